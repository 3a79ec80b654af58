#!/usr/bin/env python3
"""What a fleet asks of one Redis, without a process for each run. Every waiter has a connection of its own, on which it
says what `rlock run` says; two locks that are held share one, since 20,000 are more than many machines allow.

    fleet.py PORT RLOCK hold COUNT SECONDS    holds COUNT locks with a lease of 30 s and renews each every 10 s. Prints
                                                how late the last of the renewals was answered, ms.
    fleet.py PORT RLOCK queue COUNT TURNS     keeps COUNT waiters in one queue; each releases the lock as soon as it has
                                                it, and joins again. Prints the median time of a hand-off, us.
"""

import hashlib
import heapq
import secrets
import select
import socket
import statistics
import subprocess
import sys
import time

TTL_MS = 30_000
RENEWAL_S = 10
SHARING = 2  # locks to a connection
OWNER = "root%40host host root 4711 backup.sh "


class Scripts:
    def __init__(self, rlock, connection, verbs=("acquire", "renew", "release")):
        self.digests = {}
        for verb in verbs:
            text = subprocess.run([rlock, "__script", verb], check=True, capture_output=True, text=True).stdout
            connection.send(("SCRIPT", "LOAD", text))
            connection.answer()
            self.digests[verb] = hashlib.sha1(text.encode()).hexdigest()

    def verb_of(self, digest):
        return next((verb for verb, known in self.digests.items() if known == digest), None)

    def call(self, verb, keys, *arguments):
        return ("EVALSHA", self.digests[verb], len(keys), *keys, *arguments)


class Connection:
    """A connection of RESP 2, which cannot ask while it is subscribed."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        self.channels = []

    def send(self, *commands):
        self.socket.sendall(b"".join(encode(words) for words in commands))

    def answer(self):
        line = self.replies.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            sys.exit(f"fleet.py: {rest.decode()}")
        if kind == b"$":
            return self.replies.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return rest

    def put(self, question, channels):
        """Sends a question, and listens on the channels from then on."""
        stop = [("UNSUBSCRIBE", *self.channels)] if self.channels else []
        listen = [("SUBSCRIBE", *channels)] if channels else []
        self.send(*stop, question, *listen)
        self.due, self.channels = len(self.channels), channels

    def hear(self):
        """Returns the answer to the question."""
        while self.due:
            self.due -= self.answer()[0] == b"unsubscribe"
        answer = self.answer()
        for _ in self.channels:
            self.answer()
        return answer

    def has_more(self):
        return bool(select.select([self.socket], [], [], 0)[0])


def encode(words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Run:
    """What the keeper of one run says and hears."""

    def __init__(self, connection, key):
        tagged = "rlock:" + key
        self.base = "{" + tagged + "}:"
        self.lasting_keys = [tagged] + [self.base + name for name in ("queue", "waiters", "meta", "history", "seats")]
        self.connection = connection
        self.begin()

    def begin(self):
        self.token, self.level = secrets.token_hex(16), secrets.token_hex(8)
        self.keys = self.lasting_keys + [self.base + "ended:" + of for of in (self.level, self.token)]
        self.channel = self.base + "wake:" + self.level
        self.ticket = ""
        self.asks_at = float("inf")

    def ask(self, scripts):
        """Asks for the lock, and waits for it if need be. Returns whether it was granted."""
        question = scripts.call("acquire", self.keys, self.token, self.level, 1, TTL_MS, "queue", self.ticket, 0, OWNER, 0,
                                "kept=1")
        self.connection.put(question, [self.channel])
        outcome, *rest = self.connection.hear()
        if outcome == b"busy":
            self.ticket, self.asks_at = rest[1].decode(), time.monotonic() + int(rest[0]) / 1000
        return outcome == b"granted"

    def take(self, scripts):
        if not self.ask(scripts):
            sys.exit("fleet.py: a lock is not free")
        self.renew(scripts, [self.channel])  # the first grant is short
        self.hear_renewal()

    def renew(self, scripts, channels):
        self.connection.put(scripts.call("renew", self.keys[:1], self.token, TTL_MS, self.level), channels)

    def hear_renewal(self):
        if self.connection.hear()[0] != b"extended":
            sys.exit("fleet.py: a lock was lost")

    def release(self, scripts):
        self.connection.put(scripts.call("release", self.keys, self.token, self.level, 0, ""), [])
        if self.connection.hear()[0] != b"released":
            sys.exit("fleet.py: a lock was lost")

    def was_granted(self):
        """Reads the messages that are there."""
        granted = False
        while not granted and self.connection.has_more():
            granted = self.connection.answer()[2].startswith(b"granted")
        return granted


def watch(connections):
    poll = select.epoll(len(connections))
    for connection in connections:
        poll.register(connection.socket, select.EPOLLIN)
    return poll


def hold(port, scripts, count, seconds):
    connections = [Connection(port) for _ in range(count // SHARING)]
    runs = [Run(connections[number % len(connections)], f"held-{number}") for number in range(count)]
    channels = {connection: [] for connection in connections}
    for run in runs:
        run.take(scripts)
        channels[run.connection].append(run.channel)
    poll = watch(connections)
    connection_of = {connection.socket.fileno(): connection for connection in connections}
    start = time.monotonic()
    due = [(start + RENEWAL_S * number / count, number) for number in range(count)]
    renewing, latest = {}, 0.0
    while (now := time.monotonic()) < start + seconds:
        while due[0][0] <= now and runs[due[0][1]].connection not in renewing:
            when, number = due[0]
            runs[number].renew(scripts, channels[runs[number].connection])
            renewing[runs[number].connection] = (runs[number], when)
            heapq.heapreplace(due, (when + RENEWAL_S, number))
        for descriptor, _ in poll.poll(max(0.0, due[0][0] - time.monotonic())):
            run, when = renewing.pop(connection_of[descriptor])
            run.hear_renewal()
            latest = max(latest, time.monotonic() - when)
    print(f"{latest * 1000:.0f}")


def ask_in_time(runs, scripts, margin):
    """A waiter that does not ask again when its sleep is over counts as dead."""
    now = time.monotonic()
    for run in runs:
        if run.asks_at < now + margin:
            run.ask(scripts)


def queue(port, scripts, count, turns):
    key = f"queue-{count}"
    holder = Run(Connection(port), key)
    holder.take(scripts)
    waiting = [Run(Connection(port), key) for _ in range(count)]
    for number, run in enumerate(waiting):
        run.ask(scripts)
        if number % 100 == 0:
            ask_in_time(waiting[:number], scripts, 1)
    ask_in_time(waiting, scripts, 2)
    poll = watch([run.connection for run in (holder, *waiting)])
    run_of = {run.connection.socket.fileno(): run for run in (holder, *waiting)}
    times = []
    for turn in range(turns):
        start = time.perf_counter()
        holder.release(scripts)
        next_holder = None
        while next_holder is None:
            for descriptor, _ in poll.poll():
                if run_of[descriptor].was_granted():
                    next_holder = run_of[descriptor]
        times.append(time.perf_counter() - start)
        holder.begin()
        if holder.ask(scripts):
            sys.exit("fleet.py: a newcomer passed the queue")
        holder = next_holder
    print(f"{statistics.median(times) * 1e6:.0f}")


def main():
    port, folder, what, count, length = sys.argv[1:]
    scripts = Scripts(folder, Connection(int(port)))
    {"hold": hold, "queue": queue}[what](int(port), scripts, int(count), int(length))


if __name__ == "__main__":
    main()
