#!/usr/bin/env python3
"""A model of the quorum's fence: what lock.cc and the scripts do with it, in every order that chance finds.

    quorum_fence.py [--without-owner-check | --reuse-token] [RUNS [SEED]]

Clients acquire on servers one message at a time, settle the largest fence that a majority granted, use the lock once a
majority has settled, renew it and release it; messages are lost or very late, leases run out, servers restart empty and
then do not vote for as long as the longest lease; in half of the worlds servers also lose locks (DEL, eviction, force).
Each server's clock is off by its own amount. Exits with 1, and the story, when a fence is used twice, when one who asked
after another held gets a smaller one, or, where no lock is ever lost, when two hold at once. Without the owner check,
the condition in settle.lua and renew.lua that the token still holds, that must happen; and so it must when who has
withdrawn from a round that failed begins the next with the same token, since a withdrawal may come late.
"""

import random
import sys

SERVERS, CLIENTS, STEPS = 5, 3, 600
MAJORITY = SERVERS // 2 + 1
TTL = 60  # also --max-lease: the longest lease that anybody uses
DRIFT = 40  # clocks differ by up to so much

owner_check, reuse_token = True, False


class Violation(Exception):
    pass


class Server:
    def __init__(self, rng):
        self.skew = rng.randrange(-DRIFT, DRIFT)
        self.up_since = -TTL
        self.forget()

    def forget(self):
        self.holder, self.expires, self.fence, self.floor = None, 0, 0, 0

    def restart(self, now):
        self.forget()
        self.up_since = now

    def lose(self):
        self.holder, self.expires = None, 0

    def holds(self, token, now):
        return self.holder == token and self.expires > now

    def acquire(self, token, now):
        if now - self.up_since < TTL:
            return None  # young
        if self.holds(token, now):
            self.expires = max(self.expires, now + TTL)
            return self.fence
        if self.expires > now:
            return None  # busy
        self.floor = self.fence = max(self.floor + 1, (now + self.skew) * 10)
        self.holder, self.expires = token, now + TTL
        return self.fence

    def settle(self, token, fence, now):
        if owner_check and not self.holds(token, now):
            return False
        self.floor, self.fence = max(self.floor, fence), fence
        return True

    def renew(self, token, now):
        if owner_check and not self.holds(token, now):
            return False
        self.expires = max(self.expires, now + TTL)
        return True

    def release(self, token, now):
        if self.holds(token, now):
            self.lose()


class Client:
    """One attempt after the other, each with its own token."""

    def __init__(self, world, number):
        self.world, self.number, self.tokens = world, number, 0
        self.rest()

    def rest(self, withdrawn=False):
        if not (withdrawn and reuse_token):
            self.tokens += 1
        self.token = (self.number, self.tokens)
        self.phase, self.sent, self.end, self.fence, self.seen = "idle", 0, 0, 0, 0
        self.granted, self.agreed = {}, set()
        self.todo = []

    def holds(self, now):
        return self.phase == "holding" and now < self.end

    def ask_all(self, phase, now):
        self.phase, self.sent, self.agreed = phase, now, set()
        self.todo = self.world.rng.sample(range(SERVERS), SERVERS)

    def step(self, now):
        if self.phase == "idle":
            self.seen = max(self.world.used)
            self.ask_all("acquiring", now)
        elif self.phase == "holding":
            self.hold(now)
        elif self.world.rng.random() < 0.02:
            self.rest()  # killed: what it was granted runs out
        elif self.todo:
            self.ask(self.todo.pop(), now)
        else:
            self.conclude(now)

    def hold(self, now):
        if now >= self.end:
            self.rest()  # its command was killed in time; nothing is released
        elif self.world.rng.random() < 0.2:
            self.ask_all("releasing", now)
        elif self.world.rng.random() < 0.3:
            self.renew(now)

    def renew(self, now):
        servers = self.world.servers
        reached = [s for s in servers if self.world.arrives()]
        extended = [s for s in reached if s.renew(self.token, now)]
        heard = [s for s in extended if self.world.arrives()]
        if len(heard) < MAJORITY:
            return
        self.end = now + TTL
        for server in reached:  # who missed out is brought back
            if server not in extended and server.acquire(self.token, now) is not None:
                server.settle(self.token, self.fence, now)

    def ask(self, index, now):
        """Requests and replies are lost. A request that is given up may arrive all the same, much later."""
        server, world = self.world.servers[index], self.world
        if not world.arrives():
            world.delay(server, self.phase, self.token, self.fence)
        elif self.phase == "acquiring":
            fence = server.acquire(self.token, now)
            if fence is not None and world.arrives():
                self.granted[index] = fence
        elif self.phase == "settling":
            if server.settle(self.token, self.fence, now) and world.arrives():
                self.agreed.add(index)
        else:
            server.release(self.token, now)

    def conclude(self, now):
        if self.phase == "acquiring" and len(self.granted) >= MAJORITY:
            start = self.sent
            self.fence = max(self.granted.values())
            self.ask_all("settling", now)
            self.sent = start
        elif self.phase == "settling" and len(self.agreed) >= MAJORITY and now < self.sent + TTL:
            self.phase, self.end = "holding", self.sent + TTL
            self.world.begin(self)
        elif self.phase == "releasing":
            self.rest(withdrawn=self.end == 0)
        else:
            self.ask_all("releasing", now)


class World:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.servers = [Server(self.rng) for _ in range(SERVERS)]
        self.clients = [Client(self, n) for n in range(CLIENTS)]
        self.now, self.used, self.grants = 100 * TTL, {0}, 0
        self.lossy = self.rng.choice([0, 0.05, 0.2])
        self.restarts, self.late = [], []
        self.loses_locks = seed % 2 == 1

    def arrives(self):
        return self.rng.random() >= self.lossy

    def begin(self, client):
        self.grants += 1
        others = [c for c in self.clients if c is not client and c.holds(self.now)]
        if others and not self.loses_locks:
            raise Violation(f"{client.token} holds at {self.now} while {others[0].token} does until {others[0].end}")
        if client.fence <= client.seen:
            raise Violation(f"{client.token} asked after {client.seen} was held, and holds with {client.fence}")
        if client.fence in self.used:
            raise Violation(f"{client.token} holds with {client.fence}, which was used")
        self.used.add(client.fence)

    def delay(self, server, phase, token, fence):
        self.late.append({
            "acquiring": lambda: server.acquire(token, self.now),
            "settling": lambda: server.settle(token, fence, self.now),
            "releasing": lambda: server.release(token, self.now),
        }[phase])

    def deliver_late_request(self):
        if self.late:
            self.late.pop(self.rng.randrange(len(self.late)))()

    def may_restart(self):
        """A minority at a time, until those are old enough to have learnt from the others. What a majority forgets
        nobody knows, so that clocks must then agree better than restarts follow each other."""
        self.restarts = [t for t in self.restarts if self.now - t < 2 * TTL + DRIFT]
        return len(self.restarts) < SERVERS - MAJORITY

    def run(self):
        for _ in range(STEPS):
            self.now += self.rng.choice([0, 0, 0, 0, 1, 1, 2])
            if self.rng.random() < 0.01:
                self.now += self.rng.randrange(TTL)  # everybody is slow, or asleep
            if self.rng.random() < 0.1:
                self.deliver_late_request()
            if self.rng.random() < 0.01 and self.may_restart():
                self.rng.choice(self.servers).restart(self.now)
                self.restarts.append(self.now)
            if self.loses_locks and self.rng.random() < 0.05:
                self.rng.choice(self.servers).lose()
            self.rng.choice(self.clients).step(self.now)
        return self.grants


def main(arguments):
    global owner_check, reuse_token
    if arguments[:1] in (["--without-owner-check"], ["--reuse-token"]):
        owner_check = arguments[0] != "--without-owner-check"
        reuse_token = arguments[0] == "--reuse-token"
        arguments = arguments[1:]
    runs = int(arguments[0]) if arguments else 2000
    first = int(arguments[1]) if len(arguments) > 1 else 0
    grants = 0
    for seed in range(first, first + runs):
        try:
            grants += World(seed).run()
        except Violation as violation:
            print(f"seed {seed}: {violation}")
            return 1
    print(f"{runs} runs, {grants} grants")
    return 0


sys.exit(main(sys.argv[1:]))
