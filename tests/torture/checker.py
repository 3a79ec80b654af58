#!/usr/bin/env python3
"""Judges a run by what was written down meanwhile: the witnesses' stamps, the servers' append-only files, the history.

    checker.py FOLDER
"""

import collections
import dataclasses
import heapq
import json
import pathlib
import statistics
import sys

import layout
from aof import Log
from topologies import TOPOLOGIES
from workload import PATIENT, SLOTS

PARDONED = "(lossy) "
GRACE = 1.0  # seconds after a fault within which it may still be felt


@dataclasses.dataclass
class Hold:
    """One acquisition that a command was seen under: from its first stamp to the last of it and its descendants."""

    attempt: dict
    key: str
    kind: str
    token: str
    fence: int
    slot: int
    begin: float
    end: float
    done: bool
    records: list
    cools: float = 0  # nobody else may have it before, after its end
    expires: float = 0  # the lease, as the servers had it

    @property
    def excludes(self):
        return self.kind not in ("shared", "slots")

    @property
    def taken_until(self):
        return max(self.end, self.cools)


class History:
    def __init__(self, folder):
        lines = [json.loads(line) for line in (folder / "history").read_text(encoding="utf-8").splitlines()]
        self.options = lines[0]
        self.attempts = [line for line in lines if "attempt" in line]
        self.faults = [line for line in lines if "fault" in line and "lane" in line]
        self.healed = next(line["healed"] for line in lines if "healed" in line)
        self.end = next(line for line in lines if "orphans" in line)
        self.clocks = next(line["clocks"] for line in lines if "clocks" in line)  # wall clock minus boot-time clock
        self.queues = TOPOLOGIES[self.options["topology"]].queues
        self.logs = [Log(path) for path in sorted(folder.glob("*.aof"))]
        self.holds = self.read_holds(layout.Stamps(folder))
        for hold in self.holds:
            self.add_lease(hold)

    def read_holds(self, stamps):
        """A run that enters again what a run around it holds is the same hold."""
        holds = {}
        for attempt in self.attempts:
            entries = [(attempt["attempt"], attempt["key"], attempt["kind"])]
            if attempt["inner_key"]:
                entries.append((attempt["attempt"] + 1, attempt["inner_key"], "exclusive"))
            for number, key, kind in entries:
                record = stamps[number]
                if not record.began:
                    continue
                hold = holds.setdefault(
                    (key, record.token),
                    Hold(attempt, key, kind, record.token, record.fence, record.slot, record.first[0], 0, True, []),
                )
                hold.end = max(hold.end, *record.last)
                hold.done = hold.done and record.done
                hold.records.append(record)
        return sorted(holds.values(), key=lambda hold: hold.begin)

    def add_lease(self, hold):
        expires, cools = dict.fromkeys(self.clocks, 0), dict.fromkeys(self.clocks, 0)
        for log in self.logs:
            lease = log.leases.get((hold.key, hold.token))
            if lease:
                clock = self.clocks[log.server]
                expires[log.server] = max(expires[log.server], lease.expires / 1000 - clock)
                cools[log.server] = max(cools[log.server], lease.cools / 1000 - clock)
        hold.expires, hold.cools = self.agreed(expires.values()), self.agreed(cools.values())

    def agreed(self, times):
        """Until then nobody else can have it: servers that replicate each other agree on the last, those of a quorum on
        the first after which a majority is free."""
        return sorted(times)[-1 if self.queues else len(times) // 2]

    def by_key(self):
        keys = collections.defaultdict(list)
        for hold in self.holds:
            keys[hold.key].append(hold)
        return keys.values()


# ---- what must never be


def overlaps(history):
    """Pairs that were alive at once, and moments at which there were more than there are slots."""
    for holds in history.by_key():
        alive = []  # heap of (end, number)
        for number, hold in enumerate(holds):
            while alive and alive[0][0] <= hold.begin:
                heapq.heappop(alive)
            others = [holds[n] for _, n in alive]
            yield from ((other, hold) for other in others if hold.excludes or other.excludes)
            if hold.kind == "slots":
                yield from ((other, hold) for other in others if other.slot == hold.slot)
                if len(others) >= SLOTS:
                    yield (others[0], hold)
            heapq.heappush(alive, (hold.taken_until, number))


def fences_used_twice(history):
    tokens = collections.defaultdict(set)
    for hold in history.holds:
        tokens[hold.key, hold.fence].add(hold.token)
    return [used for used in tokens.items() if len(used[1]) > 1]


def fences_out_of_order(history):
    """Of two of which one excludes the other, the later must have the larger fence."""
    for holds in history.by_key():
        highest = collections.defaultdict(int)  # by whom it concerns
        for hold in holds:
            mine = "all" if hold.excludes else hold.slot if hold.kind == "slots" else "readers"
            concern = list(highest) if mine == "all" else ["all"] if mine == "readers" else ["all", mine]
            if any(hold.fence < highest[who] for who in concern):
                yield hold
            highest[mine] = max(highest[mine], hold.fence)


def fences_not_larger(history):
    """Whoever asks after another was seen to hold must get a larger one, even when that one's lock was lost."""
    for holds in history.by_key():
        asked = sorted(holds, key=lambda hold: hold.attempt["born"])
        seen, highest = 0, 0
        for hold in asked:
            while holds[seen].begin < hold.attempt["born"]:
                highest = max(highest, holds[seen].fence)
                seen += 1
            if hold.fence <= highest:
                yield hold


def grants_out_of_order(history):
    """As the servers wrote them down."""
    for log in history.logs if history.queues else []:
        for key, fences in log.order.items():
            yield from ((key, late, early) for early, late in zip(fences, fences[1:]) if late <= early)


def passed_waiters(history):
    return {passed for log in history.logs if history.queues for passed in log.passed}


def felt(history, attempt, at):
    """Whether a fault explains what happened to it then."""
    since = at - attempt["lease"] - GRACE
    lanes = {"server", "network"} if attempt["site"] == "far" else {"server"}
    near = (f for f in history.faults if f["begin"] <= at and f["end"] >= since)
    return bool(attempt["fault"]) or any(fault["lane"] in lanes for fault in near)


def false_losses(history):
    return [a for a in history.attempts if a["status"] in (76, 69) and not felt(history, a, a["ended"])]


def odd_ends(history):
    """Statuses that nothing explains."""
    for attempt in history.attempts:
        may = {0, 69, 76}
        if attempt["wait"] != PATIENT or attempt["inner_key"]:
            may.add(75)
        if attempt["runtime"]:
            may.add(124)
        may |= {
            "keeper killed": {-9}, "waiter killed": {-9}, "guard killed": {70}, "command killed": {137},
            "run terminated": {143, -15}, "guard frozen": {70},
        }.get(attempt["fault"], set())  # fmt: skip
        if attempt["status"] not in may:
            yield attempt


def not_served(history):
    return [a for a in history.attempts if a["status"] is None]


# ---- figures


def kill_margins(history):
    """From the last stamp of a command that rlock killed to the end of its lease, in ms."""
    for hold in history.holds:
        if not hold.done and hold.expires and hold.attempt["fault"] != "command killed":
            yield 1000 * (hold.expires - hold.end)


def recoveries(history):
    """From the end of each fault of a server to the next grant, in seconds."""
    begins = [hold.begin for hold in history.holds]
    for fault in history.faults:
        if fault["lane"] == "server":
            after = [begin for begin in begins if begin >= fault["end"]]
            if after:
                yield after[0] - fault["end"]


def outlived(history):
    """Those who were alive when their lease had run out, and by how many ms."""
    for hold in history.holds:
        if hold.expires and hold.end >= hold.expires:
            yield hold.attempt["attempt"], round(1000 * (hold.end - hold.expires), 1)


def lowest(values, share):
    ordered = sorted(values)
    return ordered[int(len(ordered) * share)]


def tally(names):
    return ", ".join(f"{count} {name}" for name, count in collections.Counter(names).most_common())


def violations(history):
    """(name, what was found) of each rule."""
    records = [record for hold in history.holds for record in hold.records]
    yield "fences used twice", fences_used_twice(history)
    yield "fences not larger than one seen", [hold.attempt["attempt"] for hold in fences_not_larger(history)]
    yield "grants out of order", list(grants_out_of_order(history))
    yield "waiters passed by others", sorted(passed_waiters(history))
    yield "updates lost by B, which checks the fence", sum(record.lost_fenced for record in records)
    yield "processes left", history.end["orphans"]
    yield "keys left", history.end["leaked"]
    yield "locks not to be had afterwards", history.end["refused"]
    yield "losses without a cause", [a["attempt"] for a in false_losses(history)]
    yield "odd exit statuses", [(a["attempt"], a["status"], a["fault"]) for a in odd_ends(history)]
    yield "never served", [a["attempt"] for a in not_served(history)]
    # What must not be while Redis keeps its locks.
    kept = "" if not history.options["lossy"] else PARDONED
    yield kept + "two holders at once", [(a.attempt["attempt"], b.attempt["attempt"]) for a, b in overlaps(history)]
    yield kept + "fences out of order", [hold.attempt["attempt"] for hold in fences_out_of_order(history)]
    yield kept + "updates lost by A, which trusts", sum(record.lost_unfenced for record in records)
    yield kept + "alive at the lease's end", list(outlived(history))


def figures(history):
    options = history.options
    lossy = ", lossy" if options["lossy"] else ""
    yield "run", f"{options['topology']}{lossy}, {options['seconds']:g} s, seed {options['seed']}"
    yield "attempts", len(history.attempts)
    yield "grants", f"{len(history.holds)}: {tally(hold.kind for hold in history.holds)}"
    own = [a["fault"] for a in history.attempts if a["fault"]]
    shared = [fault["fault"] for fault in history.faults if fault["lane"] != "process"]
    yield "faults", f"{len(own) + len(shared)}: {tally(own + shared)}"
    yield "ends", tally(f"with {a['status']}" for a in history.attempts)
    yield "granted out of the queue", sum(log.queued_grants for log in history.logs)
    margins = list(kill_margins(history))
    if margins:
        least, first = min(margins), lowest(margins, 0.01)
        yield "killed before the lease's end", f"{least:.0f} ms at least, 1 % {first:.0f} ms, of {len(margins)}"
    again = list(recoveries(history))
    if again:
        yield "next grant after a server's fault", f"{statistics.median(again):.2f} s, {max(again):.2f} s at most"
    patient = [hold.begin - hold.attempt["born"] for hold in history.holds]
    yield "longest wait", f"{max(patient, default=0):.1f} s"
    yield "refused by B", sum(record.refused for hold in history.holds for record in hold.records)


def report(folder):
    """Prints all; True when nothing was found that must not be."""
    history = History(folder)
    for name, value in figures(history):
        print(f"{name:34} {value}")
    sound = True
    for name, found in violations(history):
        count = found if isinstance(found, int) else len(found)
        sound = sound and (not count or name.startswith(PARDONED))
        print(f"{name:42} {count or 'none'}{'' if not count or isinstance(found, int) else f': {found[:5]}'}")
    print("sound" if sound else "BROKEN")
    return sound


if __name__ == "__main__":
    sys.exit(0 if report(pathlib.Path(sys.argv[1])) else 1)
