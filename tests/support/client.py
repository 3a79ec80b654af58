#!/usr/bin/env python3
"""A client of rlock's locks in another language, written from rlock-protocol(7) with redis-py: it takes, renews and
releases an exclusive lock, and waits in the same queue as rlock.

    client.py SOCKET SCRIPTS KEY COMMAND [ARG...]    runs the command under the lock, with FENCE in its environment

SCRIPTS is the folder of the .lua files, in which lines "-- WITH part..." name the parts to be put in their place.
"""

import os
import pathlib
import re
import secrets
import socket
import subprocess
import sys
import time

import redis

TTL_MS = 10_000


class Lock:
    def __init__(self, server, scripts, key):
        tagged = "rlock:" + key
        base = "{" + tagged + "}"
        self.server, self.scripts = server, pathlib.Path(scripts)
        self.keys = [tagged] + [base + ":" + name for name in ("queue", "waiters", "meta", "history")]
        self.token, self.level = secrets.token_hex(16), secrets.token_hex(8)
        self.channel = base + ":wake:" + self.level
        self.owner = f"python {socket.gethostname()} nobody {os.getpid()} client "
        self.started = time.monotonic()

    def call(self, verb, keys, *arguments):
        body = (self.scripts / f"{verb}.lua").read_text()
        text = re.sub(r"^-- WITH +(.*)$", lambda line: self.parts(line.group(1)), body, flags=re.MULTILINE)
        return self.server.eval(text, len(keys), *keys, *arguments)

    def parts(self, names):
        return "".join((self.scripts / f"{name}.lua").read_text() for name in names.split())

    def ask(self, ticket):
        waited = int((time.monotonic() - self.started) * 1000)
        return self.call("acquire", self.keys, self.token, self.level, 1, TTL_MS, "queue", ticket, waited, self.owner, 0)

    def acquire(self):
        """Returns the fence. A message is only a reason to ask again, so a forged one does no harm."""
        listener = self.server.pubsub(ignore_subscribe_messages=True)
        listener.subscribe(self.channel)
        listener.get_message(timeout=1)
        ticket = ""
        while True:
            outcome, *rest = self.ask(ticket)
            if outcome == "granted":
                self.call("renew", self.keys[:1], self.token, TTL_MS, self.level)  # the first grant is short
                return rest[0]
            if outcome != "busy":
                sys.exit(f"client.py: {outcome}")
            ticket = rest[1]
            listener.get_message(timeout=int(rest[0]) / 1000)

    def release(self, status):
        return self.call("release", self.keys, self.token, self.level, status, "")[0]


def main():
    path, scripts, key, *command = sys.argv[1:]
    lock = Lock(redis.Redis(unix_socket_path=path, decode_responses=True), scripts, key)
    fence = lock.acquire()
    status = subprocess.call(command, env={**os.environ, "FENCE": fence})
    if lock.release(status) != "released":
        sys.exit("client.py: the lock was lost")
    sys.exit(status)


if __name__ == "__main__":
    main()
