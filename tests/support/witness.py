#!/usr/bin/env python3
"""Records who was alive until when: a command that stamps CLOCK_BOOTTIME into a file every few ms, as do its
descendants, and the evaluation of these stamps.

    witness.py stamp FILE [stubborn] [child] [setsid] [double]
        Stamps until it is killed, and prints "ready" when all have begun. stubborn: all ignore TERM. The descendants: a
        plain child, one in a session of its own, one that forked twice.
    witness.py last FILE             prints the CLOCK_BOOTTIME, in ms, of the last stamp of any of them
    witness.py margin FILE DIR KEY   prints the ms from the last stamp to the end of KEY's lease as the server recorded
                                     it in its append-only file, in DIR
"""

import os
import pathlib
import re
import signal
import sys
import time


def boottime():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def stamp(file, name):
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        os.write(out, f"{name} {boottime():.3f}\n".encode())
        yield time.sleep(0.005)


def become_descendant(kind):
    """Returns False in the parent."""
    if os.fork():
        return False
    if kind != "child":
        os.setsid()
    if kind == "double" and os.fork():
        os._exit(0)
    return True


def witness(file, *kinds):
    if "stubborn" in kinds:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    names = [kind for kind in kinds if kind != "stubborn"]
    name = next(filter(become_descendant, names), "command")
    ready = name != "command"
    for _ in stamp(file, name):
        if not ready and {"command", *names} <= set(stamps(file)):
            ready = True
            print("ready", flush=True)


def stamps(file):
    """The last stamp of each process."""
    lines = pathlib.Path(file).read_text().splitlines()
    return {name: float(ms) for name, ms in (line.split() for line in lines)}


def lease_end(folder, key):
    written = b"".join(file.read_bytes() for file in pathlib.Path(folder).rglob("*.aof"))
    ends = re.findall(rb"PEXPIREAT\r\n\$\d+\r\n%s\r\n\$\d+\r\n(\d+)" % re.escape(key.encode()), written)
    return int(ends[-1]) - time.time() * 1000 + boottime()


if __name__ == "__main__":
    verb, file, *rest = sys.argv[1:]
    if verb == "stamp":
        witness(file, *rest)
    elif verb == "last":
        print(round(max(stamps(file).values())))
    else:
        print(round(lease_end(*rest) - max(stamps(file).values())))
