"""Redis servers, and networks in front of them, that fail on demand."""

import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import time

from processes import boottime, send, spawn

HERE = pathlib.Path(__file__).parent
SERVER = os.environ.get("REDIS_SERVER", "redis-server")
CLI = SERVER.removesuffix("-server") + "-cli"
PRIORITY = ["nice", "-n", "-10"] if os.geteuid() == 0 else []  # as if on machines of their own
PATIENCE = 20  # seconds that a single step may take: only a bug takes as long


def wait_until(condition, what):
    deadline = boottime() + PATIENCE
    while not condition():
        if boottime() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.02)


def free_port():
    """A port below those that the kernel gives to clients, whose cluster bus port is free too."""
    while True:
        port = random.randrange(20000, 22600)
        try:
            for candidate in (port, port + 10000):
                with socket.create_server(("127.0.0.1", candidate)):
                    pass
            return port
        except OSError:
            pass


class Redis:
    """One server, with a folder of its own, and an append-only file that is never rewritten."""

    def __init__(self, lab, name, *options, clock_error=None):
        self.folder = lab.folder / name
        self.folder.mkdir()
        self.name, self.lab, self.port = name, lab, free_port()
        self.environment = lab.environment
        self.pid, self.node, self.clock_error = None, "", 0  # node: its name in a cluster
        self.argv = [
            SERVER, "--port", str(self.port), "--bind", *lab.addresses, "--protected-mode", "no",
            "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", "", "--appendonly", "yes", "--appendfsync", "no",
            "--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0", *options,
        ]  # fmt: skip
        if clock_error is not None:
            self.set_clock(clock_error)
            self.environment = lab.environment | {
                "LD_PRELOAD": os.environ["TORTURE_CLOCK"],
                "CLOCK_ERROR": str(self.folder / "clock"),
            }

    @property
    def socket(self):
        return self.folder / "socket"

    @property
    def url(self):
        return f"redis://{self.host}"

    @property
    def host(self):
        return f"{self.lab.address}:{self.port}"

    def set_clock(self, seconds):
        """Sets by how much its wall clock is ahead."""
        self.clock_error = seconds
        self.lab.note({"clock": self.name, "error": seconds, "at": boottime()})
        file = self.folder / "clock"
        with open(file, "r+b" if file.exists() else "wb") as clock:
            clock.write(struct.pack("q", round(seconds * 1e6)))

    def start(self, *options):
        self.pid = spawn([*PRIORITY, *self.argv, *options], self.environment, self.folder / "log")

    def is_ready(self):
        return self.ask("PING") == "PONG"

    def wait_ready(self):
        wait_until(self.is_ready, f"{self.name} answers")

    def freeze(self):
        send(self.pid, signal.SIGSTOP)

    def freeze_for(self, seconds):
        """A process of the servers' priority thaws it, since we may come late where the clients are busy."""
        script = 'kill -STOP "$1" && sleep "$2"; kill -CONT "$1"'
        spawn([*PRIORITY, "sh", "-c", script, "sh", str(self.pid), str(seconds)], self.environment)

    def thaw(self):
        send(self.pid, signal.SIGCONT)

    def kill(self):
        self.keep_log()
        send(self.pid, signal.SIGKILL)

    def forget(self):
        """Removes its data; to be called between kill and start."""
        for file in self.folder.glob("appendonly*/*"):
            file.unlink()

    def ask(self, *words):
        """Returns the answer, or "" if there was none."""
        cli = [CLI, "-s", str(self.socket), *map(str, words)]
        try:
            done = subprocess.run(cli, capture_output=True, text=True, timeout=1, check=False)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.strip()

    def tell(self, *words):
        """Sends a command without waiting for the answer."""
        spawn([CLI, "-s", str(self.socket), *map(str, words)], self.environment, self.folder / "cli.log")

    def uptime(self):
        return int(self.info("server").get("uptime_in_seconds", 0))

    def info(self, section):
        pairs = (line.split(":", 1) for line in self.ask("INFO", section).splitlines() if ":" in line)
        return {name: value.strip() for name, value in pairs}

    def follow(self, primary):
        self.ask("REPLICAOF", self.lab.address, primary.port)

    def owns(self, slot):
        """The slots, of a cluster's 16384, that it serves."""
        myself = next(row.split() for row in self.ask("--raw", "CLUSTER", "NODES").splitlines() if "myself" in row)
        ranges = [words.partition("-") for words in myself[8:] if not words.startswith("[")]
        return any(int(first) <= slot <= int(last or first) for first, _, last in ranges)

    def keep_log(self):
        """Links its append-only files to a second name, since it deletes them when it becomes a replica. The base file,
        which it copied from its primary, is left out."""
        for file in self.folder.rglob("appendonly*.aof"):
            kept = self.lab.folder / f"{self.name}.{file.stat().st_ino}.aof"
            if ".base." not in file.name and not kept.exists():
                os.link(file, kept)


class Sentinel(Redis):
    """A sentinel, which keeps what it learns in its configuration file."""

    def __init__(self, lab, name, primary):
        super().__init__(lab, name)
        config = self.folder / "config"
        config.write_text(
            f"port {self.port}\nbind {' '.join(lab.addresses)}\nprotected-mode no\n"
            f"unixsocket {self.socket}\ndir {self.folder}\n"
            f"sentinel monitor main {lab.address} {primary.port} 2\n"
            "sentinel down-after-milliseconds main 1500\nsentinel failover-timeout main 3000\n",
            encoding="ascii",
        )
        self.argv = [SERVER, str(config), "--sentinel"]

    def primary_port(self):
        address = self.ask("--raw", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main").splitlines()
        return int(address[1]) if len(address) == 2 else None


class Link:
    """A network between clients and a server: see tests/support/proxy.py."""

    def __init__(self, lab, server):
        orders = lab.folder / f"{server.name}.orders"
        output = lab.folder / f"{server.name}.link"
        os.mkfifo(orders)
        self.pid = spawn(
            ["python3", str(HERE.parent / "support" / "proxy.py"), str(server.port), str(orders)],
            lab.environment,
            output,
            lab.folder / f"{server.name}.link.log",
        )
        self.orders = os.open(orders, os.O_RDWR)
        wait_until(output.read_text, "the proxy listens")
        self.url = f"redis://127.0.0.1:{int(output.read_text(encoding='ascii').split()[0])}"

    def obey(self, *words):
        os.write(self.orders, (" ".join(map(str, words)) + "\n").encode())
