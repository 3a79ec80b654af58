#!/usr/bin/env python3
"""A model of the quorum: what its clients and the scripts do, in random orders.

    quorum_fence.py [--MUTANT] [RUNS [SEED]]

Clients acquire on servers one message at a time, settle the largest fence that a majority granted, use the lock once a
majority has settled, re-enter it for nested runs, renew it level by level, put back what a server has forgotten, and
release it; others force a holder to give it up. Messages are lost or very late, leases run out, servers restart empty,
one after the other, and then do not vote for as long as the longest lease. Each server's clock is off by its own amount,
and one is set back. In half of the worlds servers also lose locks (DEL, eviction, a clock that is set forward).

Exits with 1 and prints what happened if a fence is used twice, if a client that asked after another held gets a smaller
one, if a nested run has another fence than the outer one, or, in worlds that lose no locks, if two hold at once. Each
of the MUTANTS must make that happen.
"""

import random
import sys

CLIENTS, STEPS = 3, 700
TTL = 60  # also --max-lease: the longest lease that anybody uses
DRIFT = 40  # by how much clocks may be off
DEEPEST = 3  # levels of one lock
RENEWING = 0.1  # the chance that a holder renews in a step, which makes some three renewals in a lease
MUTANTS = {
    "without-owner-check": "settle and renew do not check whether the token still holds",
    "reuse-token": "after a failed round the next has the same token and level, though a cancel may come late",
    "settle-once": "a server that may have missed the fence is not told it again",
    "unsettled": "the lock is used as soon as a majority has granted it",
    "smallest-fence": "the smallest of the granted fences is settled",
    "largest-on-reentry": "a nested run takes the largest fence that it hears, settled or not",
    "forced-at-once": "forcing takes the lock from a holder before its command is dead",
}

mutant = None


class Violation(Exception):
    pass


class Record:
    def __init__(self, token, level, expires, fence):
        self.token, self.levels, self.expires, self.fence = token, {level}, expires, fence
        self.settled = self.marked = False


class Server:
    """A server, whose times are those of its own clock, which is off by `skew`."""

    def __init__(self, world):
        self.world, self.skew = world, world.rng.randrange(-DRIFT, DRIFT)
        self.record, self.floor, self.gone = None, 0, set()
        self.up_since = self.clock() - TTL

    def clock(self):
        return self.world.now + self.skew

    def restart(self):
        self.record, self.floor, self.gone = None, 0, set()
        self.up_since = self.clock()

    def held(self):
        return self.record is not None and self.record.expires > self.clock()

    def holds(self, token):
        return self.held() and self.record.token == token

    def may_settle(self, token):
        return self.record is not None if mutant == "without-owner-check" else self.holds(token)

    def acquire(self, token, level, how="once"):
        """Returns (fence, whether it is settled), or None."""
        if self.clock() - self.up_since < TTL or (level in self.gone and mutant != "reuse-token"):
            return None
        if self.holds(token):
            if self.record.marked:
                return None
            self.record.levels.add(level)
            self.record.expires = max(self.record.expires, self.clock() + TTL)
            return self.record.fence, self.record.settled
        if self.held() or how == "reenter":
            return None
        self.floor = max(self.floor + 1, self.clock() * 10)
        self.record = Record(token, level, self.clock() + TTL, self.floor)
        return self.floor, False

    def settle(self, token, fence):
        if not self.may_settle(token):
            return False
        self.floor = max(self.floor, fence)
        if mutant == "without-owner-check":
            self.record.token = token
        self.record.fence = max(self.record.fence, fence) if self.record.settled else fence
        self.record.settled = True
        return True

    def renew(self, token, level):
        """Returns (whether the lease was extended, whether the record has the level)."""
        if not self.may_settle(token) or self.record.marked:
            return False, False
        self.record.expires = max(self.record.expires, self.clock() + TTL)
        return True, level in self.record.levels

    def release(self, token, level):
        self.gone.add(level)
        if self.holds(token):
            self.record.levels.discard(level)
            if not self.record.levels:
                self.record = None

    def force(self, fence):
        if self.held() and self.record.fence == fence:
            self.record.marked = True
            if mutant == "forced-at-once":
                self.record = None


class Run:
    """One level: a process that takes the lock, or re-enters that of the run around it, keeps it and releases it."""

    def __init__(self, world, token, level, around=None):
        self.world, self.token, self.level, self.around = world, token, level, around
        self.inside = None
        self.phase, self.todo = "idle", []
        self.fence, self.sent, self.end, self.seen = 0, 0, 0, 0
        self.granted, self.agreed = {}, set()

    def holds(self):
        return self.phase == "holding" and self.world.now < self.end

    def ask_all(self, phase):
        self.phase, self.agreed = phase, set()
        self.todo = self.world.shuffled_servers()

    def step(self):
        if self.phase == "idle":
            self.seen, self.sent, self.granted = max(self.world.used), self.world.now, {}
            self.ask_all("acquiring")
        elif self.phase == "holding":
            self.hold()
        elif self.world.rng.random() < 0.02:
            self.phase = "over"  # it is killed, and its grants run out
        elif self.todo:
            self.ask(self.todo.pop())
        else:
            self.conclude()

    def hold(self):
        rng = self.world.rng
        if self.world.now >= self.end:
            self.phase = "over"  # its command was killed in time, and it does not release
        elif self.inside is not None and self.inside.phase != "over":
            self.look_after_both()
        elif self.depth() < DEEPEST and rng.random() < 0.05:
            self.inside = Run(self.world, self.token, self.world.new_level(), around=self)
        elif rng.random() < self.world.haste:
            self.ask_all("releasing")
        elif rng.random() < RENEWING:
            self.renew()

    def look_after_both(self):
        """The nested run is part of our command, which we stop in time."""
        if self.world.rng.random() < RENEWING:
            self.renew()
        else:
            self.inside.step()
        if self.phase == "over":
            self.inside.die()

    def die(self):
        self.phase = "over"
        if self.inside is not None:
            self.inside.die()

    def depth(self):
        return 1 if self.around is None else 1 + self.around.depth()

    def renew(self):
        sent, world = self.world.now, self.world
        extended, heard = {}, 0
        for index in world.shuffled_servers():
            server = world.servers[index]
            if not world.arrives():
                world.delay(lambda server=server: server.renew(self.token, self.level))
                continue
            extended[index] = server.renew(self.token, self.level)
            heard += extended[index][0] and world.arrives()
        if heard < world.majority:
            if sum(not answer[0] for answer in extended.values()) > len(world.servers) - world.majority:
                self.die()  # lost, or forced: the command is killed before anything else
                self.ask_all("releasing")
            return
        self.end = sent + TTL
        for index, answer in extended.items():
            self.put_back(index, *answer)

    def put_back(self, index, was_extended, knows_level):
        """Gives a server that has lost the lock or our level both again, and the fence to one that may not have it."""
        server, world = self.world.servers[index], self.world
        missing = not (was_extended and knows_level)
        how = "reenter" if was_extended else "once"
        enter = lambda: server.acquire(self.token, self.level, how)
        settle = lambda: server.settle(self.token, self.fence)
        if not missing and (index in self.agreed or mutant == "settle-once"):
            return
        self.agreed.discard(index)
        if missing and not world.arrives():
            world.delay(enter)
        elif missing and (enter() is None or not world.arrives()):
            pass
        elif not world.arrives():
            world.delay(settle)
        elif settle() and world.arrives():
            self.agreed.add(index)

    def ask(self, index):
        """Requests and replies may be lost. A request that was given up may still arrive, much later."""
        server, world = self.world.servers[index], self.world
        how = "once" if self.around is None else "reenter"
        request = {
            "acquiring": lambda: server.acquire(self.token, self.level, how),
            "settling": lambda: server.settle(self.token, self.fence),
            "releasing": lambda: server.release(self.token, self.level),
        }[self.phase]
        if not world.arrives():
            world.delay(request)
            return
        answer = request()
        if self.phase == "acquiring" and answer is not None and world.arrives():
            self.granted[index] = answer
        elif self.phase == "settling" and answer and world.arrives():
            self.agreed.add(index)

    def conclude(self):
        if self.phase == "acquiring" and len(self.granted) >= self.world.majority:
            self.fence = self.choose_fence()
            self.ask_all("settling")
        elif self.phase == "settling" and self.is_agreed() and self.world.now < self.sent + TTL:
            self.phase, self.end = "holding", self.sent + TTL
            self.world.begin(self)
        elif self.phase == "releasing":
            self.phase = "over"
        else:
            self.ask_all("releasing")

    def is_agreed(self):
        return len(self.agreed) >= self.world.majority or mutant == "unsettled"

    def choose_fence(self):
        """The majority that was heard shares a server with the majority that has settled."""
        settled = [fence for fence, is_settled in self.granted.values() if is_settled]
        all_fences = [fence for fence, _ in self.granted.values()]
        if settled and mutant != "largest-on-reentry":
            return settled[0]
        return min(all_fences) if mutant == "smallest-fence" else max(all_fences)


class World:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now, self.used, self.grants, self.entered = 100 * TTL, {0}, 0, 0
        self.levels = self.tokens = 0
        self.servers = [Server(self) for _ in range(self.rng.choice([3, 5]))]
        self.majority = len(self.servers) // 2 + 1
        self.lossy = self.rng.choice([0, 0.05, 0.2])
        self.forgot, self.late = [], []
        self.loses_locks = seed % 2 == 1
        self.haste = self.rng.choice([0.1, 0.01, 0.002])  # the chance that a holder releases in a step
        self.clients = [self.new_run() for _ in range(CLIENTS)]

    def new_level(self):
        self.levels += 1
        return self.levels

    def new_run(self, before=None):
        withdrew = before is not None and before.end == 0
        if withdrew and mutant == "reuse-token":
            return Run(self, before.token, before.level)
        self.tokens += 1
        return Run(self, self.tokens, self.new_level())

    def shuffled_servers(self):
        return self.rng.sample(range(len(self.servers)), len(self.servers))

    def arrives(self):
        return self.rng.random() >= self.lossy

    def delay(self, request):
        self.late.append(request)

    def begin(self, run):
        if run.around is not None:
            self.entered += 1
            if run.fence != run.around.fence:
                raise Violation(f"{run.token} was entered again with {run.fence}, and holds with {run.around.fence}")
            return
        self.grants += 1
        others = [other for other in self.clients if other is not run and other.holds()]
        if others and not self.loses_locks:
            raise Violation(f"{run.token} holds at {self.now} while {others[0].token} does until {others[0].end}")
        if run.fence <= run.seen:
            raise Violation(f"{run.token} asked after {run.seen} was held, and holds with {run.fence}")
        if run.fence in self.used:
            raise Violation(f"{run.token} holds with {run.fence}, which was used")
        self.used.add(run.fence)

    def deliver_late_request(self):
        if self.late:
            self.late.pop(self.rng.randrange(len(self.late)))()

    def may_forget(self):
        """Only a minority may forget, until it is old enough to have learnt from the others: nobody knows what a
        majority has forgotten."""
        self.forgot = [t for t in self.forgot if self.now - t < 2 * TTL + DRIFT]
        if len(self.forgot) >= len(self.servers) - self.majority:
            return False
        self.forgot.append(self.now)
        return True

    def fail(self):
        rng = self.rng
        if rng.random() < 0.1:
            self.deliver_late_request()
        if rng.random() < 0.02 and self.may_forget():
            rng.choice(self.servers[1:]).restart()
        if rng.random() < 0.005 and self.may_forget():
            self.servers[0].skew = rng.randrange(-DRIFT, DRIFT if self.loses_locks else self.servers[0].skew + 1)
        if self.loses_locks and rng.random() < 0.05:
            rng.choice(self.servers).record = None
        if rng.random() < 0.003:
            self.force_somebody()

    def force_somebody(self):
        for holder in [client for client in self.clients if client.holds()][:1]:
            for server in self.servers:
                force = lambda server=server, fence=holder.fence: server.force(fence)
                force() if self.arrives() else self.delay(force)

    def run(self):
        for _ in range(STEPS):
            self.now += self.rng.choice([0, 0, 0, 0, 1, 1, 2])
            if self.rng.random() < 0.005:
                self.now += self.rng.randrange(TTL)  # everybody is slow or suspended
            self.fail()
            turn = self.rng.randrange(CLIENTS)
            self.clients[turn].step()
            if self.clients[turn].phase == "over":
                self.clients[turn] = self.new_run(self.clients[turn])


def main(arguments):
    global mutant
    if arguments and arguments[0].removeprefix("--") in MUTANTS:
        mutant = arguments.pop(0).removeprefix("--")
    runs = int(arguments[0]) if arguments else 2000
    first = int(arguments[1]) if len(arguments) > 1 else 0
    grants = entered = 0
    for seed in range(first, first + runs):
        world = World(seed)
        try:
            world.run()
        except Violation as violation:
            print(f"seed {seed}: {violation}")
            return 1
        grants, entered = grants + world.grants, entered + world.entered
    print(f"{runs} runs, {grants} grants, entered again {entered} times")
    return 0


sys.exit(main(sys.argv[1:]))
