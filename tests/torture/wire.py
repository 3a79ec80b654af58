"""A real network between the servers and the remote clients: a network namespace and a pair of virtual interfaces. TCP
sends again what is lost here, unlike what the proxy of `servers.Link` loses."""

import os
import socket
import subprocess

NOBODY = "02:00:00:00:00:99"  # a hardware address that nobody has, so packets to it are lost


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


class Wire:
    """Only root can make one. `address` is the servers' end; `enter` is the prefix of a command that is to run at the
    other end."""

    def __init__(self):
        self.name = f"rlock{os.getpid()}"
        self.enter = ["nsenter", f"--net=/run/netns/{self.name}"]
        # Each run has four of the addresses that are reserved for benchmarks (RFC 2544).
        base = 4 * (os.getpid() % 2**15)
        self.address, self.far_address = (f"198.{18 + (base >> 16)}.{base >> 8 & 255}.{base & 255 | n}" for n in (1, 2))
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self.name, "type", "veth", "peer", "name", "far", "netns", self.name)
            ip("address", "add", f"{self.address}/30", "dev", self.name)
            ip("link", "set", self.name, "up")
            ip("-n", self.name, "address", "add", f"{self.far_address}/30", "dev", "far")
            self.plug_in()
            self.try_out()
        except (OSError, subprocess.SubprocessError):
            self.remove()
            raise

    def try_out(self):
        with socket.create_server((self.address, 0)) as server:
            port = server.getsockname()[1]
            call = ["bash", "-c", f"exec 3<>/dev/tcp/{self.address}/{port}"]
            subprocess.run([*self.enter, *call], check=True, capture_output=True, timeout=10)

    def unplug(self):
        ip("-n", self.name, "link", "set", "far", "down")

    def plug_in(self):
        ip("-n", self.name, "link", "set", "far", "up")

    def lose_requests(self):
        ip("-n", self.name, "neighbour", "replace", self.address, "lladdr", NOBODY, "dev", "far", "nud", "permanent")

    def deliver_requests(self):
        ip("-n", self.name, "neighbour", "delete", self.address, "dev", "far")

    def lose_replies(self):
        ip("neighbour", "replace", self.far_address, "lladdr", NOBODY, "dev", self.name, "nud", "permanent")

    def deliver_replies(self):
        ip("neighbour", "delete", self.far_address, "dev", self.name)

    def remove(self):
        ip("netns", "delete", self.name)


def make_wire():
    """Returns a wire, or None if none can or may be made."""
    if os.geteuid() != 0:
        return None
    try:
        return Wire()
    except (OSError, subprocess.SubprocessError):
        return None
