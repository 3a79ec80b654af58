#!/usr/bin/env python3
"""For how long one script keeps Redis busy at most, when a lock has many holders, levels or waiters. Says what rlock says,
without its processes, and prints a line "WHAT<tab>us" for the slowest call of each script in each scene, by Redis's own
slow log.

    slowest.py PORT RLOCK [COUNT]      COUNT waiters (10,000); a tenth of that readers, slots and levels
"""

import secrets
import sys

from fleet import Connection, OWNER, Scripts, TTL_MS

LOCK, BASE = "rlock:job", "{rlock:job}:"
LASTING_KEYS = [LOCK] + [BASE + name for name in ("queue", "waiters", "meta", "history", "seats")]


class Party:
    """One that asks for the lock."""

    def __init__(self, scene, capacity=1, token=None):
        self.scene, self.capacity = scene, capacity
        self.token, self.level = token or secrets.token_hex(16), secrets.token_hex(8)
        self.keys = LASTING_KEYS + [BASE + "ended:" + of for of in (self.level, self.token)]
        scene.subscribe(BASE + "wake:" + self.level)

    def acquire(self, how, *options):
        answer = self.scene.call("acquire", self.keys, self.token, self.level, self.capacity, TTL_MS, how, "", 0, OWNER, 0,
                                 "kept=1", *options)
        return answer[0].decode()

    def take(self, *options):
        self.expect("granted", self.acquire("once", *options))
        self.renew()

    def wait(self, *options):
        self.expect("busy", self.acquire("queue", *options))

    def renew(self):
        self.expect("extended", self.scene.call("renew", [LOCK], self.token, TTL_MS, self.level)[0].decode())

    def release(self, status=0):
        return self.scene.call("release", self.keys, self.token, self.level, status, "")[0].decode()

    def cancel(self):
        return self.scene.call("cancel", self.keys, self.token, self.level, self.token)[0].decode()

    @staticmethod
    def expect(outcome, answer):
        if answer != outcome:
            sys.exit(f"slowest.py: {outcome} was to be the answer, not {answer}")


class Scene:
    def __init__(self, port, rlock, what):
        self.what = what
        self.connection, self.ears = Connection(port), Connection(port)
        self.ask("FLUSHALL")
        self.ask("CONFIG", "SET", "slowlog-max-len", "100000")
        self.scripts = Scripts(rlock, self.connection, ("acquire", "renew", "release", "cancel"))
        self.begin()

    def ask(self, *words):
        self.connection.send(words)
        return self.connection.answer()

    def subscribe(self, channel):
        self.ears.send(("SUBSCRIBE", channel))
        self.ears.answer()

    def call(self, verb, keys, *arguments):
        return self.ask(*self.scripts.call(verb, keys, *arguments))

    def begin(self):
        """What was called before was to set the scene."""
        self.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.ask("SLOWLOG", "RESET")

    def end(self):
        slowest = {}
        for entry in self.ask("SLOWLOG", "GET", "100000"):
            took, words = int(entry[2]), entry[3]
            verb = self.scripts.verb_of(words[1].decode()) if words[0].upper() == b"EVALSHA" else None
            if verb:
                slowest[verb] = max(took, slowest.get(verb, 0))
        for verb, took in slowest.items():
            print(f"{self.what}: {verb}\t{took}")


def comes_and_goes(scene, capacity=1):
    """Somebody asks in vain, or comes and goes."""
    for _ in range(20):
        other = Party(scene, capacity)
        if other.acquire("queue", "max-waiting=5000") == "granted":
            other.renew()
            other.release()
        else:
            other.cancel()


def run(port, rlock, count):
    few = count // 10

    def scene(what):
        return Scene(port, rlock, what)

    s = scene(f"{count} waiters")
    holder = Party(s)
    holder.take()
    for _ in range(count):
        Party(s).wait()
    s.begin()
    comes_and_goes(s)
    holder.release()
    s.end()

    s = scene(f"{count} waiters for work that is then done")
    holder = Party(s)
    holder.take("once=v1")
    for _ in range(count):
        Party(s).wait("once=v1")
    s.begin()
    holder.release()
    s.end()

    for what, capacity in ("readers", 0), ("slots", few):
        s = scene(f"{few} {what}")
        parties = [Party(s, capacity) for _ in range(few)]
        for party in parties:
            party.take()
        s.begin()
        for party in parties[:20]:
            party.renew()
            party.release()
        comes_and_goes(s, capacity)
        comes_and_goes(s)
        s.end()

        s = scene(f"{few} {what} that wait")
        holder = Party(s)
        holder.take()
        for _ in range(few):
            Party(s, capacity).wait()
        s.begin()
        holder.release()
        s.end()

    s = scene(f"{few} levels")
    outer = Party(s)
    outer.take()
    levels = [Party(s, token=outer.token) for _ in range(few)]
    for level in levels:
        level.acquire("reenter")
    s.begin()
    for level in levels[:20]:
        level.renew()
        level.release()
    outer.release()
    s.end()


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10_000)
