"""What must not be found in a history."""

import collections
import heapq

from workload import PATIENT, SLOTS

GRACE = 3.0  # seconds for which a fault may have effects after its end: it takes a --timeout to notice it


def overlaps(history):
    """Holders that were alive beside one that excludes them, in the same slot, or beside as many as there are slots."""
    for holds in history.by_key():
        alive = []  # heap of (end, number)
        for number, hold in enumerate(holds):
            while alive and alive[0][0] <= hold.begin:
                heapq.heappop(alive)
            others = [holds[n] for _, n in alive]
            crowded = hold.kind == "slots" and len(others) >= SLOTS
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
    return {passed for log in history.logs if history.queues for passed in log.passed}


def felt(history, attempt, at):
    """Whether a fault explains what happened to the attempt at that time."""
    since = at - attempt["lease"] - GRACE
    lanes = {"server", "visitor", {"far": "network", "remote": "wire"}.get(attempt["site"])}
    if attempt["fault"]:
        return True
    for fault in history.faults:
        silenced = fault["fault"] == "strand" and attempt["born"] <= fault["end"]  # it notices only when it asks
        if fault["lane"] in lanes and fault["begin"] <= at and (silenced or fault["end"] >= since):
            return True
    return False


def false_losses(history):
    lost = [a for a in history.attempts if a["status"] in (76, 69)]
    return [a["attempt"] for a in lost if not felt(history, a, a["ended"])]


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
            yield attempt["attempt"], attempt["status"], attempt["fault"]


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
    "updates lost by B, which checks the fence": updates_lost_by_b,
    "processes left": orphans,
    "keys left": leaked_keys,
    "locks not to be had afterwards": locks_refused,
    "losses without a cause": false_losses,
    "odd exit statuses": odd_ends,
    "never served": not_served,
}
WHILE_LOCKS_ARE_KEPT = {
    "two holders at once": overlaps,
    "fences out of order": fences_out_of_order,
    "updates lost by A, which trusts": updates_lost_by_a,
    "alive at the lease's end": outlived,
}
