"""What must not be found in a history."""

import collections
import heapq

from workload import NEWEST, PATIENT, PERIOD, slots_of

GRACE = 3.0  # seconds for which a fault may have effects after its end: it takes a --redis-timeout to notice it
EARLY = 0.5  # seconds before its lease's end at which nobody may give up a release


def overlaps(history):
    """Holders that were alive beside one that excludes them, in the same slot, or beside as many as there are slots."""
    for holds in history.by_key():
        alive = []  # heap of (end, number)
        for number, hold in enumerate(holds):
            while alive and alive[0][0] <= hold.begin:
                heapq.heappop(alive)
            others = [holds[n] for _, n in alive]
            crowded = hold.kind == "slots" and len(others) >= slots_of(hold.key)
            for other in others:
                same_slot = hold.kind == "slots" and other.slot == hold.slot
                if hold.excludes or other.excludes or same_slot or crowded:
                    yield other.number, hold.number
            heapq.heappush(alive, (hold.taken_until, number))


def fences_used_twice(history):
    tokens = collections.defaultdict(set)
    for hold in history.holds:
        tokens[hold.key, hold.fence].add(hold.token)
    return [used for used in tokens.items() if len(used[1]) > 1]


def fences_out_of_order(history):
    """Of two of which one excludes the other, the later must have the larger fence."""
    for holds in history.by_key():
        highest = collections.defaultdict(int)  # by kind of holder
        for hold in holds:
            mine = "all" if hold.excludes else hold.slot if hold.kind == "slots" else "readers"
            concern = list(highest) if mine == "all" else ["all"] if mine == "readers" else ["all", mine]
            if any(hold.fence < highest[who] for who in concern):
                yield hold.number
            highest[mine] = max(highest[mine], hold.fence)


def fences_not_larger(history):
    """A run that asks after another was seen to hold must get a larger fence, even if the other has lost its lock."""
    for holds in history.by_key():
        asked = sorted(holds, key=lambda hold: hold.attempt["born"])
        seen, highest = 0, 0
        for hold in asked:
            while holds[seen].begin < hold.attempt["born"]:
                highest = max(highest, holds[seen].fence)
                seen += 1
            if hold.fence <= highest:
                yield hold.number


def grants_out_of_order(history):
    """The same in the order in which the servers recorded the grants."""
    for log in history.logs if history.queues else []:
        for key, fences in log.order.items():
            yield from ((key, late, early) for early, late in zip(fences, fences[1:]) if late <= early)


def passed_waiters(history):
    """Also by one that was given a place before them. (A server that replicates others may not have seen all tickets.)"""
    passed = {passed for log in history.logs if history.queues for passed in log.passed}
    return passed | {strange for log in history.logs if len(history.logs) == 1 for strange in log.strange}


def begun_beside_the_replaced(history):
    """Runs with --replace that began before the command of another such, and its descendants, were dead."""
    for holds in history.by_key():
        replacing = [hold for hold in holds if hold.kind == "replace"]
        yield from ((old.number, new.number) for old, new in zip(replacing, replacing[1:]) if new.begin <= old.end)


def thrown_out(history):
    """Those who were superseded or replaced although they, or whoever did it, had not asked for that."""
    by_pid = collections.defaultdict(list)
    for attempt in history.attempts:
        by_pid[attempt["pid"], attempt["key"]].append(attempt)
    for attempt in history.attempts:
        how = attempt["turned_away"]
        kinds = {"": set(), "superseded": NEWEST, "replaced": {"replace"}}[how]
        others = [other for other in by_pid[attempt["by"], attempt["key"]] if other["kind"] in kinds]
        if how and (attempt["kind"] not in kinds or not others):
            yield attempt["attempt"]


def left_too_early(history):
    """Waiters that left with 75 although neither was their time over, nor were they superseded."""
    for attempt in history.attempts:
        early = attempt["status"] == 75 and attempt["ended"] - attempt["born"] < attempt["wait"]
        if early and attempt["turned_away"] != "superseded":
            yield attempt["attempt"]


def done_twice(history):
    """Runs that ended with 0 right after another had done the same (--once), or within its period (--once-per)."""
    for holds in history.by_key():
        last = None
        for hold in holds:
            if not ended_well(hold):
                continue
            succeeded = hold.attempt["status"] == 0 and hold.attempt["released"] and not was_told_to_stop(hold.attempt)
            if succeeded and last and is_done_by(hold, last, history) and not forgotten(history, last, hold):
                yield last.number, hold.number
            last = hold if succeeded else None  # of others nobody knows whether the server has recorded a success


def was_told_to_stop(attempt):
    """Then its work counts as not done, even if it ended with 0."""
    return attempt["fault"] in ("run terminated", "terminal interrupted", "terminal closed")


def ended_well(hold):
    """It may do so even when it is told to end."""
    return hold.done or hold.attempt["status"] == 0


def is_done_by(hold, last, history):
    """A fence is the time of its grant in us, in a quorum by any of the clocks. A period is counted in whole ms."""
    if hold.kind == "once-per":
        return hold.fence // 1000 - last.fence // 1000 < 1e3 * (PERIOD - history.clocks_differ_by)
    return hold.kind == "once" and hold.attempt["once"] == last.attempt["once"]


def forgotten(history, earlier, later):
    """Whether a server of a quorum has lost its memory between the two."""
    losses = [fault for fault in history.faults if fault["fault"] in ("restart_empty", "restart_in_turn")]
    return any(loss["begin"] <= later.begin and loss["end"] >= earlier.begin for loss in losses)


def done_by_nobody(history):
    """Runs that ended with 0 without their command, and without a run that had done the same."""
    for attempt in history.attempts:
        idle = attempt["status"] == 0 and not history.ran(attempt)
        if idle and not any(spares(hold, attempt, history) for hold in history.holds):
            yield attempt["attempt"]


def spares(hold, attempt, history):
    """Whether that run left the attempt nothing to do."""
    if not ended_well(hold) or hold.key != attempt["key"] or hold.begin > attempt["ended"]:
        return False
    if attempt["kind"] == "once-per":
        return hold.begin >= attempt["born"] - PERIOD - history.clocks_differ_by
    return attempt["kind"] == "once" and hold.attempt["once"] == attempt["once"]


def felt(history, attempt, at):
    """Whether a fault explains what happened to the attempt at that time."""
    since = at - attempt["lease"] - GRACE
    lanes = {"machine", "server", "visitor", {"far": "network", "remote": "wire"}.get(attempt["site"])}
    if attempt["fault"]:
        return True
    for fault in history.faults:
        silenced = fault["fault"] == "strand" and attempt["born"] <= fault["end"]  # it notices only when it asks
        if fault["lane"] in lanes and fault["begin"] <= at and (silenced or fault["end"] >= since):
            return True
    return False


def false_losses(history):
    lost = [a for a in history.attempts if a["status"] in (76, 69) and a["turned_away"] != "replaced"]
    return [a["attempt"] for a in lost if not felt(history, a, a["ended"])]


def odd_ends(history):
    """Statuses that nothing explains."""
    for attempt in history.attempts:
        may = {0, 69, 76}
        if attempt["wait"] != PATIENT or attempt["inner_key"] or attempt["turned_away"] == "superseded":
            may.add(75)
        if attempt["runtime"]:
            may.add(124)
        may |= {
            "keeper killed": {-9}, "waiter killed": {-9}, "guard killed": {70}, "command killed": {137},
            "run terminated": {143, -15}, "guard frozen": {70}, "keeper bereaved": {70, 71}, "guard bereaved": {-9},
            "terminal interrupted": {130, -2}, "terminal closed": {129, -1},
        }.get(attempt["fault"], set())  # fmt: skip
        if attempt["status"] not in may:
            yield attempt["attempt"], attempt["status"], attempt["fault"]


def given_up(history):
    """Releases that were given up long before the end of the lease that they knew. One that ends later was extended by a
    renewal whose answer nobody may have seen."""
    holds = {hold.number: hold for hold in history.holds}
    for outage in history.outages:
        hold = holds.get(outage["released_into"])
        if not hold or not hold.attempt["gave_up"] or hold.attempt["site"] != "near":
            continue
        if hold.attempt["ended"] + EARLY < hold.expires < outage["begin"] + hold.attempt["lease"]:
            yield hold.number


def not_served(history):
    return [a["attempt"] for a in history.attempts if a["status"] is None]


def outlived(history):
    """The holds that were alive after their lease had run out, and for how many ms."""
    for hold in history.holds:
        if hold.expires and hold.end >= hold.expires:
            yield hold.number, round(1000 * (hold.end - hold.expires), 1)


def orphans(history):
    return history.end["orphans"]


def leaked_keys(history):
    return history.end["leaked"]


def locks_refused(history):
    return history.end["refused"]


def updates_lost_by_a(history):
    return [(hold.number, lost) for hold in history.holds if (lost := hold.sum("lost_unfenced"))]


def updates_lost_by_b(history):
    return [(hold.number, lost) for hold in history.holds if (lost := hold.sum("lost_fenced"))]


# name -> the function that finds its violations
ALWAYS = {
    "fences used twice": fences_used_twice,
    "fences not larger than one seen": fences_not_larger,
    "grants out of order": grants_out_of_order,
    "waiters passed by others": passed_waiters,
    "thrown out without a right": thrown_out,
    "left before their time was over": left_too_early,
    "updates lost by B, which checks the fence": updates_lost_by_b,
    "processes left": orphans,
    "keys left": leaked_keys,
    "locks not to be had afterwards": locks_refused,
    "losses without a cause": false_losses,
    "odd exit statuses": odd_ends,
    "never served": not_served,
    "releases given up": given_up,
}
WHILE_LOCKS_ARE_KEPT = {
    "two holders at once": overlaps,
    "begun beside the replaced": begun_beside_the_replaced,
    "done twice": done_twice,
    "done by nobody": done_by_nobody,
    "fences out of order": fences_out_of_order,
    "updates lost by A, which trusts": updates_lost_by_a,
    "alive at the lease's end": outlived,
}
