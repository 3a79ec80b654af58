#!/usr/bin/env python3
"""Tries to break mutual exclusion, and tells whether it succeeded. run.sh starts it, and explains the options."""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time

import checker
from faults import Weather, lanes
from processes import boottime, first_child, marked, send, spawn
from servers import wait_until
from topologies import TOPOLOGIES
from wire import make_wire
from workload import KEYS, PROGRAMS, Population

HERE = pathlib.Path(__file__).parent
TICK = 0.005
LONGEST_DRAIN = 120  # seconds after the last fault in which everybody must be served
EXPIRES_LATER = re.compile(":(meta|history|seats|ended:[0-9a-f]+)$")


# The init of the namespace lets the kernel reap whatever it adopts.
INIT = ["unshare", "--pid", "--fork", "--kill-child", "env", "--ignore-signal=CHLD", "sleep", "infinity"]


class Lab:
    """The folder of a run, the history in it, the network, and the environment of what is started."""

    def __init__(self, folder):
        self.folder = folder
        self.history = open(self.folder / "history", "a", encoding="utf-8")
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("RLOCK", "REDIS"))}
        self.environment = keep | {"HOME": str(folder), "LC_ALL": "C"}
        self.wire = make_wire()
        self.address = self.wire.address if self.wire else "127.0.0.1"
        self.addresses = sorted({"127.0.0.1", self.address})
        self.note({"wire": self.wire is not None})
        self.container = spawn(INIT, self.environment) if self.wire else None
        self.namespace = self.container and self.find_namespace()
        self.stalls = spawn([sys.executable, str(HERE / "stalls.py"), str(folder / "stalls")], self.environment)

    def find_namespace(self):
        """The namespace of processes of a container, into which nsenter leads; whoever may make a wire may make one."""
        wait_until(lambda: first_child(self.container), "the container has an init")
        return f"/proc/{first_child(self.container)}/ns/pid"

    def note(self, facts):
        print(json.dumps(facts), file=self.history)

    def close(self):
        self.history.close()
        send(self.stalls, signal.SIGKILL)
        if self.container:
            send(self.container, signal.SIGKILL)
        if self.wire:
            self.wire.remove()


class Run:
    def __init__(self, lab, options):
        self.lab, self.options = lab, options
        self.topology = TOPOLOGIES[options.topology](lab, options.lossy)
        self.rng = random.Random(options.seed)
        self.population = Population(lab, self.topology, self.rng)
        self.weather = None

    def load(self):
        """Makes faults and new runs until the time is over, then lets those that have begun come to their end."""
        self.topology.start()
        self.weather = Weather(lanes(self.lab, self.topology, self.population, self.options))
        end = boottime() + self.options.seconds
        change, target = 0, 0
        most = min(self.options.most, self.topology.most_clients)
        least = min(20, most)
        while boottime() < end:
            if boottime() > change:
                change = boottime() + 3
                target = self.rng.randint(least, most)
                self.topology.keep_logs()
            if boottime() > end - 5:
                target = least
            self.population.keep_at(target)
            self.weather.advance(True)
            self.tick()
        while self.weather.advance(False):
            self.tick()

    def drain(self):
        self.lab.note({"healed": boottime()})
        end = boottime() + LONGEST_DRAIN
        while (self.population.alive or self.population.visitors) and boottime() < end:
            self.tick()
        for attempt in self.population.alive.values():
            self.lab.note(attempt.facts())

    def tick(self):
        self.population.reap()
        time.sleep(TICK)

    def inspect(self):
        """Notes what is left behind after every key has been locked and released once more."""
        left = sorted(marked(self.lab.folder))
        for pid in left:
            send(pid, signal.SIGKILL)
        refused = [key for key in KEYS if not self.population.lock_once(key)]
        keys = [key for key in self.topology.keys() if not EXPIRES_LATER.search(key)]
        clock = time.time() - boottime()
        self.lab.note({"orphans": left, "refused": refused, "leaked": keys})
        self.lab.note({"clocks": {server.name: clock + server.clock_error for server in self.topology.servers}})
        self.topology.stop()


def perform(folder, options):
    lab = Lab(folder)
    lab.note(vars(options))
    lab.note({"programs": PROGRAMS})
    run = Run(lab, options)
    try:
        run.load()
        run.drain()
        run.inspect()
    finally:
        for pid in marked(folder):
            send(pid, signal.SIGKILL)
        run.topology.stop()
        lab.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--topology", choices=TOPOLOGIES, default="single")
    parser.add_argument("--lossy", action="store_true")
    parser.add_argument("--most", type=int, default=150)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="torture."))
    sound = False
    try:
        perform(folder, options)
        sound = checker.report(folder)
    finally:
        if sound and not options.keep:
            shutil.rmtree(folder)
        else:
            print(f"history: {folder}")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
