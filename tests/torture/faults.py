"""What goes wrong, and when. A fault is a generator: it does its harm, yields the seconds to wait, and heals. One that
finds nothing to harm returns without yielding. The seed decides everything but which processes a fault finds."""

import os
import random
import signal

from processes import boottime, forbid_descriptors, send
from wire import Wire
from workload import KEYS, hang_up

STORM, CALM = 10, 3  # seconds: without a calm there would be no recovery to measure


# ---- faults of one run, mostly a holder. Each run gets one at most: if both of rlock's processes fail it promises
# nothing.

OF_A_PROCESS = {
    "keeper killed": 3, "keeper frozen": 3, "guard killed": 2, "guard frozen": 2, "command killed": 1,
    "command frozen": 1, "run terminated": 1, "waiter killed": 2, "waiter frozen": 2,
    "keeper bereaved": 2, "guard bereaved": 2, "terminal interrupted": 3, "terminal closed": 3,
}  # fmt: skip
# Bereaved is who loses the other one and can open no descriptor any more, so that it must do the killing without.
CTRL_C = b"\x03"


def strike(population, rng, name):
    who, deed = name.split()
    candidates = population.waiters() if who == "waiter" else population.holders()
    candidates = [a for a in candidates if may_suffer(a, name)]
    if not candidates:
        return
    families = [a for a in candidates if not a.lonely]
    attempt = rng.choice(families if families and (deed == "bereaved" or who == "terminal") else candidates)
    pid = {"guard": attempt.guard, "command": attempt.command}.get(who, lambda: attempt.pid)()
    other = attempt.guard() if who == "keeper" else attempt.pid
    if pid is None or other is None:
        return
    attempt.fault = name
    if deed == "frozen":
        send(pid, signal.SIGSTOP)
        yield attempt.lease * rng.uniform(0.1, 1.6)
        send(pid, signal.SIGCONT)
        return
    if deed == "interrupted":
        os.write(attempt.terminal, CTRL_C)
    elif deed == "closed":
        hang_up(attempt)
    elif deed == "bereaved":
        forbid_descriptors(pid)
        send(other, signal.SIGKILL)
    else:
        send(pid, {"killed": signal.SIGKILL, "terminated": signal.SIGTERM}[deed])
    yield 0


def may_suffer(attempt, name):
    if attempt.fault or name in ("command killed", "run terminated") and not attempt.lonely:
        return False
    if name == "command frozen":
        return not attempt.tty  # there rlock stops with it, as a job of a shell
    return attempt.terminal >= 0 or not name.startswith("terminal")


# ---- faults of a server that keeps its data


def freeze(topology, rng):
    yield from freeze_for(topology.victim(rng), outage(rng))


def freeze_shortly(topology, rng):
    """Freezes it, but not for so long that another takes its place."""
    seconds = rng.uniform(0.05, 0.4)
    topology.victim(rng).freeze_for(seconds)
    yield seconds


def freeze_for(server, seconds):
    server.freeze()
    yield seconds
    server.thaw()


def outage_at_release(population):
    """Freezes all servers, and makes a command end well meanwhile."""

    def fault(topology, rng):
        candidates = [a for a in population.holders() if not a.fault and not a.layers and not a.runtime]
        if not candidates:
            return
        attempt = max(candidates, key=lambda a: (a.site == "near", a.hasty, "once" in a.kind, a.lease))
        command = attempt.command()
        if command is None:
            return
        attempt.fault = "outage at the release"
        begin = boottime()
        for server in topology.servers:
            server.freeze()
        send(command, signal.SIGUSR1)
        yield 0.4 if topology.watched else attempt.lease * rng.uniform(0.1, 0.6)
        for server in topology.servers:
            server.thaw()
        population.lab.note({"released_into": attempt.number, "begin": begin, "end": boottime()})

    fault.__name__ = "outage_at_release"
    return fault


def restart(topology, rng):
    server = topology.victim(rng)
    server.kill()
    yield outage(rng)
    server.start()
    yield 0.1


def pause_clients(topology, rng):
    yield from pause_for(topology.victim(rng), outage(rng), rng)


def pause_shortly(topology, rng):
    yield from pause_for(topology.victim(rng), rng.uniform(0.05, 0.4), rng)


def pause_for(server, seconds, rng):
    server.tell("CLIENT", "PAUSE", round(seconds * 1000), rng.choice(["ALL", "WRITE"]))
    yield seconds


def kill_clients(topology, rng):
    topology.victim(rng).tell("CLIENT", "KILL", "TYPE", rng.choice(["normal", "pubsub"]))
    yield 0.05


def flush_scripts(topology, rng):
    topology.victim(rng).tell("SCRIPT", "FLUSH")
    yield 0.05


OF_A_SERVER = {freeze: 3, restart: 3, pause_clients: 2, kill_clients: 2, flush_scripts: 1}


# ---- faults of a server that forgets


def delete_lock(topology, rng):
    key = f"rlock:{rng.choice(list(KEYS))}"
    for server in topology.servers:
        server.tell("DEL", key)
    yield 0.1


def step_clock(topology, rng):
    server = topology.victim(rng)
    server.set_clock(server.clock_error + rng.uniform(-3, 3))
    yield 0.1


# ---- faults of the network between the far clients and a server


def slow(topology, rng):
    link = rng.choice(topology.links)
    link.obey("delay", round(rng.uniform(0.02, 1.5), 3))
    yield rng.uniform(0.5, 3)
    link.obey("pass")


def late_then_dark(topology, rng):
    """Catches a client that counts its lease from the answer, and so believes in it for too long."""
    link = rng.choice(topology.links)
    delay = rng.uniform(0.3, 0.9)
    link.obey("delay", round(delay, 3))
    yield delay + rng.uniform(0.1, 0.6)
    link.obey("dark")
    yield rng.uniform(1, 3.5)
    link.obey("pass")


def silence(mode):
    def fault(topology, rng):
        link = rng.choice(topology.links)
        link.obey(mode)
        yield outage(rng)
        link.obey("pass")

    fault.__name__ = mode
    return fault


def once(mode):
    def fault(topology, rng):
        link = rng.choice(topology.links)
        link.obey(mode)
        yield 0.05

    fault.__name__ = mode
    return fault


OF_THE_NETWORK = {
    slow: 2, late_then_dark: 5, silence("drop"): 2, silence("deaf"): 2, silence("dark"): 2, silence("detain"): 2,
    once("cut"): 2, once("strand"): 1,
}  # fmt: skip


# ---- people and scripts, whose requests and answers are lost and late like all others


def evict(population, rng):
    """Makes the holder of a key give it up: its command must be dead before another begins. A cooling lock is freed."""
    key = rng.choice(list(KEYS))
    population.lab.note({"evicts": key, "at": boottime()})
    population.visit(rng, f"rlock release -k {key} --force -w 3")
    yield 0.1


def hold_by_script(population, rng):
    """Takes a lock without a keeper, through every verb."""
    population.visit(
        rng,
        "T=$(rlock acquire -k report --ttl 2 -w 3) && rlock renew -k report --ttl 2 --token $T;"
        " rlock release -k report --token ${T:-00000000000000000000000000000000}",
    )
    yield 0.1


def look_about(population, rng):
    population.visit(rng, f"rlock status; rlock log -n 3 {rng.choice(list(KEYS))}")
    yield 0.1


OF_VISITORS = {evict: 2, hold_by_script: 2, look_about: 1}


# ---- faults of the wire between the remote clients and all servers


def on_the_wire(harm, heal):
    def fault(topology, rng):
        harm(topology.lab.wire)
        yield outage(rng)
        heal(topology.lab.wire)

    fault.__name__ = harm.__name__
    return fault


OF_THE_WIRE = {
    on_the_wire(Wire.unplug, Wire.plug_in): 2,
    on_the_wire(Wire.lose_requests, Wire.deliver_requests): 1,
    on_the_wire(Wire.lose_replies, Wire.deliver_replies): 2,
}


def outage(rng):
    """The length of an outage: most are ridden out, some are not."""
    return rng.choice([rng.uniform(0.05, 0.3), rng.uniform(0.3, 1), rng.uniform(1, 3.5)])


# ---- when


class Lane:
    """Faults of one sort, one after the other."""

    def __init__(self, lab, name, seed, gap, begin):
        self.lab, self.name, self.gap, self.begin = lab, name, gap, begin
        self.rng = random.Random(f"{seed} {name}")
        self.fault, self.fault_name = None, ""
        self.since, self.next_at = 0, 0
        self.did_harm = False

    def advance(self, now, storm):
        if now < self.next_at:
            return
        if self.fault is None and storm:
            self.fault_name, self.fault = self.begin(self.rng)
            self.since, self.did_harm = now, False
        if self.fault is not None:
            self.step(now)

    def step(self, now):
        pause = next(self.fault, None)
        if pause is not None:
            self.did_harm, self.next_at = True, now + pause
            return
        if self.did_harm:
            self.lab.note({"fault": self.fault_name, "lane": self.name, "begin": self.since, "end": now})
        self.fault = None
        self.next_at = now + self.rng.expovariate(1 / self.gap)


def lanes(lab, topology, population, options):
    def process(rng):
        name = rng.choices(list(OF_A_PROCESS), OF_A_PROCESS.values())[0]
        return name, strike(population, rng, name)

    def one_of(faults):
        def begin(rng):
            fault = rng.choices(list(faults), faults.values())[0]
            return fault.__name__, fault(topology, rng)

        return begin

    def visitor(rng):
        deed = rng.choices(list(OF_VISITORS), OF_VISITORS.values())[0]
        return deed.__name__, deed(population, rng)

    for number in range(3):
        yield Lane(lab, "process", f"{options.seed} {number}", 1, process)
    yield Lane(lab, "visitor", options.seed, 2, visitor)
    of_servers = topology.safe | (topology.lossy if options.lossy else {})
    at_release = {outage_at_release(population): 3}
    if topology.watched:
        of_servers |= at_release
    else:
        yield Lane(lab, "server", f"{options.seed} release", 3, one_of(at_release))
    yield Lane(lab, "server", options.seed, 1.5, one_of(of_servers))
    if topology.links:
        yield Lane(lab, "network", options.seed, 1.5, one_of(OF_THE_NETWORK))
    if lab.wire:
        yield Lane(lab, "wire", options.seed, 1.5, one_of(OF_THE_WIRE))


class Weather:
    """All lanes together."""

    def __init__(self, every_lane):
        self.lanes = list(every_lane)
        self.start = boottime()

    def advance(self, goes_on):
        """Begins new faults if `goes_on`, and ends those that have begun. Returns False when none is left to end."""
        now = boottime()
        storm = goes_on and (now - self.start) % (STORM + CALM) < STORM
        for lane in self.lanes:
            lane.advance(now, storm)
        return any(lane.fault for lane in self.lanes)
