#!/usr/bin/env python3
"""Judges a run by what was recorded meanwhile, and prints its figures.

    checker.py FOLDER
"""

import collections
import pathlib
import statistics
import sys

import rules
from history import History


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


def lowest(values, share):
    ordered = sorted(values)
    return ordered[int(len(ordered) * share)]


def tally(names):
    return ", ".join(f"{count} {name}" for name, count in collections.Counter(names).most_common())


def figures(history):
    options = history.options
    lossy = ", lossy" if options["lossy"] else ""
    yield "run", f"{options['topology']}{lossy}, {options['seconds']:g} s, seed {options['seed']}"
    if not history.has_wire:
        yield "remote clients", "none: no network namespace may be made here"
    if history.beside:
        yield "programs", "two versions, half of the runs each"
    yield "attempts", len(history.attempts)
    yield "grants", f"{len(history.holds)}: {tally(hold.kind for hold in history.holds)}"
    own = [a["fault"] for a in history.attempts if a["fault"]]
    shared = [fault["fault"] for fault in history.faults if fault["lane"] != "process"]
    yield "faults", f"{len(own) + len(shared)}: {tally(own + shared)}"
    yield "ends", tally(f"with {a['status']}" for a in history.attempts)
    yield "turned away", tally(a["turned_away"] for a in history.attempts if a["turned_away"]) or "nobody"
    yield "done by another", sum(1 for a in history.attempts if a["status"] == 0 and not history.ran(a))
    yield "granted out of the queue", len({grant for log in history.logs for grant in log.queued_grants})
    margins = list(kill_margins(history))
    if margins:
        least, first = min(margins), lowest(margins, 0.01)
        yield "killed before the lease's end", f"{least:.0f} ms at least, 1 % {first:.0f} ms, of {len(margins)}"
    again = list(recoveries(history))
    if again:
        yield "next grant after a server's fault", f"{statistics.median(again):.2f} s, {max(again):.2f} s at most"
    patient = [hold.begin - hold.attempt["born"] for hold in history.holds]
    yield "longest wait", f"{max(patient, default=0):.1f} s"
    last = max(attempt["ended"] for attempt in history.attempts)
    yield "all served", f"{max(last - history.healed, 0):.1f} s after the last fault"
    yield "refused by B", sum(hold.sum("refused") for hold in history.holds)


def report(folder):
    """Prints all figures and violations; returns True if there are no violations that count."""
    history = History(folder)
    for name, value in figures(history):
        print(f"{name:42} {value}")
    lossy = history.options["lossy"]
    broken = [name for name, rule in rules.ALWAYS.items() if not holds(name, rule(history))]
    for name, rule in rules.WHILE_LOCKS_ARE_KEPT.items():
        if not holds(f"{name}, pardoned" if lossy else name, rule(history)) and not lossy:
            broken.append(name)
    print("BROKEN" if broken else "sound")
    return not broken


def holds(name, violations):
    found = list(violations)
    print(f"{name:42} {len(found)}: {found[:5]}" if found else f"{name:42} none")
    return not found


if __name__ == "__main__":
    sys.exit(0 if report(pathlib.Path(sys.argv[1])) else 1)
