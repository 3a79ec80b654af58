"""What the servers recorded: who was granted what, until when, and in which order."""

import collections
import dataclasses

PREFIX = "rlock:"


@dataclasses.dataclass
class Lease:
    """The lease of one token, as one server had it; times in ms of that server's wall clock."""

    expires: int = 0
    cools: int = 0


def commands(data):
    """The commands in an append-only file, without an incomplete one at its end."""
    at = 0
    try:
        while at < len(data):
            line = data.index(b"\r\n", at)
            if data[at : at + 1] != b"*":  # an annotation
                at = line + 2
                continue
            words, count = [], int(data[at + 1 : line])
            at = line + 2
            for _ in range(count):
                line = data.index(b"\r\n", at)
                begin, end = line + 2, line + 2 + int(data[at + 1 : line])
                if data[end : end + 2] != b"\r\n":
                    return
                words.append(data[begin:end])
                at = end + 2
            yield words
    except ValueError:
        return


class Log:
    """One append-only file."""

    def __init__(self, path):
        self.server = path.name.split(".")[0]
        self.leases = collections.defaultdict(dict)  # (key, token) -> fence -> Lease
        self.order = collections.defaultdict(list)  # key -> fences as they were granted
        self.queued_grants = []  # (key, token)
        self.passed = []  # (key, token, token of a waiter that was before it in the queue)
        self.queues = collections.defaultdict(dict)  # its key -> token -> ticket
        self.given = collections.defaultdict(list)  # queue -> tickets in the order in which they were first seen
        self.strange = []  # (queue, token) with a ticket that is neither new nor was anybody's before
        self.tickets = {}  # token -> ticket, also of waiters that have left the queue
        self.capacity = {}  # token -> number
        self.in_force = None
        self.floors = {}  # the key of the lock's memory -> its largest fence
        self.raised = {}  # the same before this transaction, if that has raised it
        self.written = []  # the records that this transaction wrote, as (fence, key, token)
        for words in commands(path.read_bytes()):
            name, *rest = [word.decode(errors="replace") for word in words]
            verb = self.VERBS.get(name.upper())
            if verb:
                verb(self, *rest)

    def multi(self):
        self.raised.clear()
        self.written.clear()

    def execute(self):
        """Which of the records are grants is known only at the end, since the floor may be written after them."""
        for fence, key, token in sorted(self.written):
            memory = f"{{{key}}}:meta"
            if memory in self.raised and self.raised[memory] < fence <= self.floors[memory]:
                self.grant(key, token, fence)
        self.multi()

    def zadd(self, queue, *words):
        if not queue.endswith("}:queue"):
            return  # the seats of a crowd
        ticket, token = int(words[-2]), words[-1]  # NX stands before them
        self.tickets[token] = self.queues[queue].setdefault(token, ticket)
        given = self.given[queue]
        if not given or ticket > given[-1]:
            given.append(ticket)
        elif ticket not in given:
            self.strange.append((queue, token))

    def zrem(self, queue, *tokens):
        if not queue.endswith("}:queue"):
            return
        for token in tokens:
            self.queues[queue].pop(token, None)
            self.tickets.setdefault(token, 0)  # it queued before this file began

    def delete(self, *keys):
        for key in keys:
            self.queues.pop(key, None)

    def hset(self, key, *fields):
        pairs = list(zip(fields[::2], fields[1::2]))
        if key.endswith("}:waiters"):
            for token, text in pairs:
                capacity, _, _, ticket, *_ = text.split(" ")
                self.capacity[token] = int(capacity)
                self.tickets.setdefault(token, int(ticket))
        elif key.endswith("}:meta"):
            for floor in (int(text.split()[0]) for name, text in pairs if name == "state"):
                if key in self.floors:  # a file need not begin with the lock's first grant
                    self.raised.setdefault(key, self.floors[key])
                self.floors[key] = floor
        else:
            for token, text in pairs:
                if token == "rlock":
                    self.in_force = int(text)
                elif token not in ("seen", "slots"):  # of a crowd
                    self.record(key, token, text)

    def record(self, key, token, text):
        expires, cools, _, _, fence = map(int, text.split()[:5])
        self.written.append((fence, key, token))
        lease = self.leases[key.removeprefix(PREFIX), token].setdefault(fence, Lease())
        lease.expires = max(lease.expires, expires)
        lease.cools = max(lease.cools, cools)

    def grant(self, key, token, fence):
        """Notes every waiter that was passed, except by one that fits beside it.

        What has a ticket and no claim is not a waiter: a server that is killed while it writes a transaction goes on
        behind the last whole command of it.
        """
        name = key.removeprefix(PREFIX)
        self.order[name].append(fence)
        queue = self.queues[f"{{{key}}}:queue"]
        mine = self.tickets.get(token, float("inf"))
        if token in self.tickets:
            self.queued_grants.append((name, token))
        for other, ticket in queue.items():
            capacity = self.capacity.get(other)
            beside = self.in_force != 1 and capacity == self.in_force
            if other != token and ticket < mine and capacity is not None and not beside:
                self.passed.append((name, token, other))

    VERBS = {
        "MULTI": multi, "EXEC": execute, "ZADD": zadd, "ZREM": zrem, "HSET": hset, "HMSET": hset, "DEL": delete, "UNLINK": delete,
    }  # fmt: skip
