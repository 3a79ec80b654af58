#!/usr/bin/env python3
"""A client of rlock's locks in another language, written from rlock-protocol(7) with redis-py. It waits in the same queue
as rlock, renews the lock while a command runs, kills the command when it must give the lock up, and releases it.

    client.py SOCKET RLOCK KEY COMMAND [ARG...]    runs the command under the lock, with FENCE in its environment

RLOCK is the program, which prints the scripts. TTL_MS in the environment is the lease, by default 10 s.
"""

import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import quote

import redis

TTL_MS = int(os.environ.get("TTL_MS", "10000"))


def clock():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def after(since, ms):
    return since + ms * 0.00099 - 0.002  # 1 % less, since two clocks may run at different rates


class Lock:
    def __init__(self, server, rlock, key, command):
        lock, base = f"rlock:{key}", f"{{rlock:{key}}}"
        self.server, self.rlock, self.scripts = server, rlock, {}
        self.token, self.level = secrets.token_hex(16), secrets.token_hex(8)
        names = ("queue", "waiters", "meta", "history", "seats", f"ended:{self.level}", f"ended:{self.token}")
        self.keys = [lock] + [f"{base}:{name}" for name in names]
        note = "evict=forced,by nobody"  # the scripts would take this for an extra if it were not encoded
        who = ("python = py", socket.gethostname(), "nobody", str(os.getpid()), " ".join(command), note)
        self.owner = " ".join(quote(word, safe="") for word in who)
        self.fence, self.end, self.why = None, 0, ""
        self.listener = server.pubsub(ignore_subscribe_messages=True)
        self.listener.subscribe(f"{base}:wake:{self.level}")
        self.hear(1)  # the confirmation

    def call(self, verb, keys, *arguments):
        if verb not in self.scripts:
            text = subprocess.run([self.rlock, "__script", verb], check=True, capture_output=True, text=True).stdout
            self.scripts[verb] = self.server.register_script(text)
        return self.scripts[verb](keys=keys, args=arguments)

    def hear(self, seconds):
        message = self.listener.get_message(timeout=seconds)
        return message["data"] if message else ""

    def acquire(self):
        started, ticket = clock(), ""
        while not self.fence:
            sent = clock()
            options = ("queue", ticket, int((sent - started) * 1000), self.owner, 0, "kept=1")
            outcome, *rest = self.call("acquire", self.keys, self.token, self.level, 1, TTL_MS, *options)
            if outcome == "granted":
                self.fence, self.end = rest[0], after(sent, int(rest[2]))
            elif outcome == "busy":
                ticket = rest[1]
                self.wait(int(rest[0]), sent, rest[6])
            else:
                sys.exit(f"client.py: {outcome}")

    def wait(self, ms, sent, answered):
        """Returns when it is time to ask, or when the lock was handed over."""
        message = self.hear(ms / 1000)
        while message.isdigit():
            message = self.hear(int(message) / 1000)
        if not message.startswith("granted "):
            return
        _, fence, _, lease, asked, since, proof = message.split()
        begin = after(sent, int(since))
        if asked == answered and begin <= clock() and proof == hashlib.sha1(f"{self.token}:{fence}".encode()).hexdigest():
            self.fence, self.end = fence, after(begin, int(lease))
            print(f"handed over, {(self.end - clock()) * 1000:.0f} ms left", file=sys.stderr)

    def renew(self):
        sent = clock()
        outcome, *rest = self.call("renew", self.keys[:1], self.token, TTL_MS, self.level)
        if outcome == "extended":
            self.end = after(sent, int(rest[0]))
        else:
            self.end, self.why = 0, f"evicted,{rest[1]}" if outcome == "evicted" else "lost"

    def run(self, command):
        """Returns the command's exit status, or the negative number of the signal that ended it."""
        child = subprocess.Popen(command, env={**os.environ, "FENCE": self.fence}, start_new_session=True)
        due = 0  # at once, since the first lease is short
        while child.poll() is None:
            try:
                if self.hear(0.02) or clock() > due:
                    due = clock() + TTL_MS / 3000
                    self.renew()
            except redis.RedisError:
                time.sleep(0.02)
            if clock() > self.end - TTL_MS / 5000:
                os.killpg(child.pid, signal.SIGKILL)
        return child.returncode

    def release(self, status):
        end = self.why or (f"signal:{-status}" if status < 0 else "")
        return self.call("release", self.keys, self.token, self.level, status if status >= 0 else 128 - status, end)[0]


def main():
    path, rlock, key, *command = sys.argv[1:]
    server = redis.Redis(unix_socket_path=path, decode_responses=True, socket_timeout=TTL_MS / 10000)
    lock = Lock(server, rlock, key, command)
    lock.acquire()
    status = lock.run(command)
    if lock.release(status) != "released":
        sys.exit("client.py: the lock was lost")
    sys.exit(status)


if __name__ == "__main__":
    main()
