"""What the clients do: runs of rlock, of every kind, on seven keys, with the witness as their command."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

import layout
from processes import MARK, boottime, first_child, full_pipe, reap, spawn

# key -> its cell in the resources, and how often its runs are of which kind
KEYS = {
    "ledger": dict(
        cell=0,
        kinds={"exclusive": 5, "shared": 2, "reentered": 1, "layered": 1, "nested": 1, "latest": 1, "replace": 1},
    ),
    "catalog": dict(cell=8, kinds={"shared": 6, "exclusive": 2}),
    "seats": dict(cell=16, kinds={"slots": 1}),
    "report": dict(cell=24, kinds={"exclusive": 3, "cooling": 1, "latest": 1, "replace": 1}),
    "preview": dict(cell=48, kinds={"replace": 4, "exclusive": 1}),
    "schema": dict(cell=32, kinds={"once": 6, "exclusive": 1}),
    "nightly": dict(cell=40, kinds={"once-per": 4, "exclusive": 1}),
    "library": dict(cell=56, kinds={"shared": 30, "exclusive": 1}, crowd=24),
    "arena": dict(cell=64, kinds={"slots": 1}, slots=20, crowd=24),
}
SLOTS = 3
NEWEST = {"latest", "replace"}  # the kinds that supersede each other while they wait
SAME_ID = 8  # the number of runs with --once in a row that have the same ID
PERIOD = 5  # seconds, of --once-per
LAYERS = {"reentered": 1, "layered": 2, "nested": 1}  # the number of nested runs
OPTIONS = {
    "shared": ["--shared"], "latest": ["--latest"], "replace": ["--replace"],
    "once-per": ["--once-per", str(PERIOD)],
}  # fmt: skip
TURNED_AWAY = re.compile(r"(superseded|replaced) by \S+ pid (\d+)")
NOT_RELEASED = re.compile("could not release|was no longer held")
GIVEN_UP = re.compile("could not release .*; it stays taken")
MUTE = {"shared", "exclusive", "slots"}  # the kinds of which nobody needs to know what they say
PATIENT = 10**6
PROGRAMS = [name for name in ("rlock", "rlock-beside") if shutil.which(name)]


def slots_of(key):
    return KEYS[key].get("slots", SLOTS)


def options_of(key, kind):
    return ["--slots", str(slots_of(key))] if kind == "slots" else OPTIONS.get(kind, [])


@dataclasses.dataclass
class Attempt:
    """One `rlock run` and what is known of it. Its nested runs have the numbers that follow."""

    number: int
    key: str
    kind: str
    site: str
    lease: float
    wait: float  # seconds, or PATIENT
    runtime: float  # 0: no limit
    inner_key: str = ""
    layers: int = 0
    once: str = ""  # the ID
    program: str = "rlock"
    mute: bool = False  # its standard error is a full pipe
    hasty: bool = False  # its --redis-timeout is much shorter than its lease
    tty: str = ""  # the terminal on which it leads a session
    terminal: int = -1  # our end of it
    lonely: bool = True  # its command has no descendants
    fault: str = ""  # the fault that hit it
    born: float = 0
    ended: float = 0
    status: int | None = None
    pid: int = 0
    turned_away: str = ""  # superseded or replaced, as it says itself
    by: int = 0  # the process that turned it away
    released: bool = True  # it can and has not complained about the release
    gave_up: bool = False  # the release, while the lease went on

    def guard(self):
        return first_child(self.pid)

    def command(self):
        guard = self.guard()
        return guard and first_child(guard)

    def facts(self):
        return {"attempt": self.number} | {k: v for k, v in dataclasses.asdict(self).items() if k != "number"}


class Population:
    """The runs in progress, which are kept at a fixed number."""

    def __init__(self, lab, topology, rng):
        self.lab, self.rng, self.topology = lab, rng, topology
        self.environment = lab.environment | topology.variables | {MARK: str(lab.folder)}
        if lab.namespace:
            self.environment["TORTURE_NAMESPACE"] = lab.namespace
        self.full_pipe = full_pipe()
        self.alive = {}  # pid -> attempt
        self.visitors = set()  # pids
        self.count = self.once = 0
        (lab.folder / "errors").mkdir()
        with open(lab.folder / "stamps", "wb") as stamps:
            stamps.truncate(layout.RECORD.size * layout.MOST_ATTEMPTS)
        with open(lab.folder / "resources", "wb") as resources:
            resources.truncate(65536)
        self.stamps = layout.Stamps(lab.folder)

    def keep_at(self, target):
        while len(self.alive) < target:
            key = self.rng.choices(list(KEYS), [0.1 if "crowd" in KEYS[key] else 1 for key in KEYS])[0]
            for _ in range(KEYS[key].get("crowd", 1) if self.topology.has_slots else 1):
                self.start_one(key)

    def start_one(self, key):
        attempt = self.invent(key)
        attempt.born = boottime()
        environment = self.environment | {"RLOCK_REDIS": self.topology.url_at(attempt.site)}
        if attempt.hasty:
            environment["RLOCK_REDIS_TIMEOUT"] = "0.7"
        way = self.lab.wire.enter if attempt.site == "remote" else []
        errors = self.full_pipe[1] if attempt.mute else None
        output = os.devnull if attempt.mute else self.errors_of(attempt)
        attempt.pid = spawn([*way, *self.command_line(attempt)], environment, output, errors, attempt.tty)
        self.alive[attempt.pid] = attempt
        self.count += 1 + attempt.layers

    def visit(self, rng, script):
        """Runs a script at any site; it is not judged."""
        site = rng.choice(self.topology.sites())
        way = self.lab.wire.enter if site == "remote" else []
        environment = self.environment | {"RLOCK_REDIS": self.topology.url_at(site)}
        self.visitors.add(spawn([*way, "sh", "-c", script], environment, self.lab.folder / "visitors"))

    def invent(self, key):
        rng = self.rng
        kinds = self.kinds_of(key)
        kind = rng.choices(list(kinds), kinds.values())[0]
        lease = rng.choice([1, 1.5, 2, 3] if "once" not in kind else [1, 2, self.topology.longest_lease])
        wait = rng.choices([0, round(rng.uniform(0.1, 5), 2), PATIENT], [15, 25, 60])[0]
        inner_key = {"reentered": key, "layered": key, "nested": "report"}.get(kind, "")
        runtime = lease * rng.uniform(0.2, 1) if rng.random() < 0.05 else 0
        site = rng.choice(self.topology.sites())
        attempt = Attempt(self.count, key, kind, site, lease, wait, runtime, inner_key, LAYERS.get(kind, 0))
        if kind == "once":
            attempt.once = f"v{self.once // SAME_ID}"
            self.once += 1
        attempt.program = rng.choice(PROGRAMS)
        attempt.mute = kind in MUTE and rng.random() < 0.15
        attempt.released = not attempt.mute  # of others nobody hears a complaint
        attempt.hasty = rng.random() < 0.3
        if rng.random() < 0.2:
            attempt.terminal, attempt.tty = open_terminal()
        return attempt

    def kinds_of(self, key):
        """How often the runs of a key are of which kind."""
        kinds = KEYS[key]["kinds"]
        return kinds if self.topology.has_slots or "slots" not in kinds else {"exclusive": 1}

    def command_line(self, attempt):
        rng = self.rng
        run = self.run(attempt.program, attempt.key, attempt.kind, attempt.lease)
        run += ["--once", attempt.once] if attempt.once else []
        run += {0: ["-n"], PATIENT: []}.get(attempt.wait, ["-w", str(attempt.wait)])
        if attempt.runtime:
            run += ["--max-runtime", f"{attempt.runtime:.2f}"]
        if attempt.kind == "cooling":
            run += ["--min-hold", f"{attempt.lease * rng.uniform(0.1, 0.8):.2f}"]
        witness = self.witness(attempt.number, attempt.key, attempt.kind, self.hold(attempt))
        if rng.random() < 0.3:
            witness.append("stubborn")
        if rng.random() < (0.8 if attempt.runtime or attempt.tty else 0.3):
            attempt.lonely = False
            witness += rng.sample(["child", "session", "orphan"], rng.randint(1, 3))
            if self.lab.namespace and not attempt.layers and rng.random() < 0.3:
                witness.append("elsewhere")
            witness += rng.choice([["careless"], []])
        for layer in range(1, attempt.layers + 1):
            attempt.lonely = False
            kind = "exclusive" if layer == attempt.layers else attempt.kind
            witness += ["--", *self.run(rng.choice(PROGRAMS), attempt.inner_key, "exclusive", attempt.lease), "-w", "5", "--"]
            witness += self.witness(attempt.number + layer, attempt.inner_key, kind, self.hold(attempt))
        return [*run, "--", *witness]

    def run(self, program, key, kind, lease):
        """Each program is chosen at random: an upgrade may come between a run and its nested runs."""
        return [program, "run", "-k", key, "--ttl", str(lease), *options_of(key, kind)]

    def witness(self, number, key, kind, hold):
        does = {"shared": "read", "reentered": "idle", "layered": "idle", "nested": "idle"}.get(kind, "write")
        files = self.lab.folder
        cell = str(KEYS[key]["cell"])
        witness = os.environ["TORTURE_WITNESS"]
        return [witness, str(files / "stamps"), str(number), str(files / "resources"), cell, str(round(hold)), does]

    def hold(self, attempt):
        """In ms: mostly short, so that there are many; some longer than the lease, or than --max-runtime."""
        if attempt.runtime:
            return 2000 * attempt.lease
        if attempt.kind == "replace":
            return 1000 * attempt.lease * self.rng.uniform(0, 1)
        if "crowd" in KEYS[attempt.key]:
            return 1000 * self.rng.uniform(0.2, 1)
        if attempt.layers and self.rng.random() < self.topology.long_layers:
            return 1000 * self.rng.uniform(2, 5)
        return 1000 * attempt.lease * self.rng.choices(
            [0, self.rng.uniform(0, 0.02), self.rng.uniform(0, 0.5), self.rng.uniform(0.5, 2)], [40, 45, 10, 5]
        )[0]

    def errors_of(self, attempt) -> pathlib.Path:
        return self.lab.folder / "errors" / str(attempt.number)

    def holders(self):
        """The runs whose command is running now."""
        return [a for a in self.alive.values() if self.stamps[a.number].runs]

    def waiters(self):
        return [a for a in self.alive.values() if not self.stamps[a.number].began]

    def reap(self):
        for pid, status in reap():
            self.visitors.discard(pid)
            attempt = self.alive.pop(pid, None)
            if attempt is None:
                continue
            attempt.ended, attempt.status = boottime(), status
            hang_up(attempt)
            self.read_errors_of(attempt)
            self.lab.note(attempt.facts())
            if status in (0, 75):
                self.errors_of(attempt).unlink(missing_ok=True)

    def read_errors_of(self, attempt):
        try:
            errors = self.errors_of(attempt).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        if turned_away := TURNED_AWAY.search(errors):
            attempt.turned_away, attempt.by = turned_away[1], int(turned_away[2])
        attempt.released = not NOT_RELEASED.search(errors)
        attempt.gave_up = bool(GIVEN_UP.search(errors))

    def lock_once(self, key):
        """Whether the lock can be had, alone, when nobody else asks: a reader could have it beside a dead one's lease."""
        run = ["rlock", "run", "-k", key, "--ttl", "2", "-w", "10", "--", "true"]
        environment = self.environment | {"RLOCK_REDIS": self.topology.url_at("near")}
        return subprocess.run(run, env=environment, stderr=subprocess.DEVNULL, check=False).returncode == 0


def open_terminal():
    """A new one: our end, and the name of the other."""
    ours, other = os.openpty()
    name = os.ttyname(other)
    os.close(other)
    return ours, name


def hang_up(attempt):
    """Closes its terminal."""
    if attempt.terminal >= 0:
        os.close(attempt.terminal)
        attempt.terminal = -1
