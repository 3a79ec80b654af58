"""What is known of a run afterwards: the attempts and faults that were noted, the holds that the witnesses stamped, and
the leases that the servers recorded."""

import collections
import dataclasses
import json

import layout
from aof import Log
from topologies import TOPOLOGIES

EVICTION = 6  # seconds that a release --force may be on its way


@dataclasses.dataclass
class Hold:
    """One acquisition under which a command was seen, from its first stamp to the last of it and its descendants."""

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
    cools: float = 0  # until then nobody else may have the lock, even after the hold's end
    expires: float = 0  # the end of the lease on the servers

    @property
    def number(self):
        return self.attempt["attempt"]

    @property
    def excludes(self):
        return self.kind not in ("shared", "slots")

    @property
    def taken_until(self):
        return max(self.end, self.cools)

    def sum(self, count):
        return sum(getattr(record, count) for record in self.records)


class History:
    """The whole history of a run, read from its folder."""

    def __init__(self, folder):
        texts = [path.read_text(encoding="utf-8") for path in (folder / "history", folder / "stalls") if path.exists()]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        self.options = next(line for line in lines if "seed" in line)
        self.has_wire = next(line["wire"] for line in lines if "wire" in line)
        self.beside = any("programs" in line and len(line["programs"]) > 1 for line in lines)
        self.attempts = [line for line in lines if "attempt" in line]
        self.outages = [line for line in lines if "released_into" in line]
        self.evictions = [line for line in lines if "evicts" in line]
        self.faults = [line for line in lines if "fault" in line and "lane" in line]
        self.healed = next(line["healed"] for line in lines if "healed" in line)
        self.end = next(line for line in lines if "orphans" in line)  # what was found at the end
        self.clocks = next(line["clocks"] for line in lines if "clocks" in line)  # wall clock minus boot-time clock
        topology = TOPOLOGIES[self.options["topology"]]
        self.steps = collections.defaultdict(list)  # server -> (boot time, by how much its clock was wrong from then on)
        for line in lines:
            if "clock" in line:
                self.steps[line["clock"]].append((line["at"], line["error"]))
        self.queues, self.clocks_differ_by = topology.queues, topology.clocks_differ_by
        self.logs = [Log(path) for path in sorted(folder.glob("*.aof"))]
        self.holds = self.read_holds(layout.Stamps(folder))
        for hold in self.holds:
            self.add_lease(hold)
        self.began = {(hold.number, hold.key) for hold in self.holds}

    def read_holds(self, stamps):
        """A run that re-enters a lock of the run around it is the same hold."""
        holds = {}
        for attempt in self.attempts:
            entries = [(attempt["attempt"], attempt["key"], attempt["kind"])]
            for layer in range(1, attempt["layers"] + 1):
                entries.append((attempt["attempt"] + layer, attempt["inner_key"], "exclusive"))
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
            for fence, lease in log.leases.get((hold.key, hold.token), {}).items():
                if self.queues and fence != hold.fence:
                    continue  # the grant to a question that arrived after the end; a quorum settles its fence later
                expires[log.server] = max(expires[log.server], self.boot_time(log.server, lease.expires))
                if fence == hold.fence:  # in a quorum a question that arrives late leaves a record that nobody settles
                    cools[log.server] = max(cools[log.server], self.boot_time(log.server, lease.cools))
        hold.expires, hold.cools = self.agreed(expires.values()), self.agreed(cools.values())
        if any(e["evicts"] == hold.key and hold.begin - EVICTION < e["at"] < hold.cools for e in self.evictions):
            hold.cools = 0

    def boot_time(self, server, ms):
        """When that server's clock first showed this time; it may have been set since."""
        steps = self.steps[server] or [(0, 0)]
        clock = self.clocks[server] - steps[-1][1]
        for (_, error), (end, _) in zip(steps, [*steps[1:], (float("inf"), 0)]):
            shown = ms / 1000 - clock - error
            if shown < end:
                break
        return shown

    def agreed(self, times):
        """The time until which nobody else can have the lock: the last end on servers that replicate each other, in a
        quorum the first after which a majority is free."""
        return sorted(times)[-1 if self.queues else len(times) // 2]

    def ran(self, attempt):
        """Whether its command was seen."""
        return (attempt["attempt"], attempt["key"]) in self.began

    def by_key(self):
        keys = collections.defaultdict(list)
        for hold in self.holds:
            keys[hold.key].append(hold)
        return keys.values()
