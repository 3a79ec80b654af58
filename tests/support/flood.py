#!/usr/bin/env python3
"""Sends as many messages as Redis takes to every channel that somebody listens on.

    flood.py PORT PATTERN SECONDS [TEXT]
"""

import socket
import sys
import threading
import time


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def drain(connection):
    try:
        while connection.recv(1 << 20):
            pass
    except OSError:
        pass


def main(port, pattern, seconds, text="0"):
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.sendall(encode(b"PUBSUB", b"CHANNELS", pattern.encode()))
    channels = [line for line in connection.recv(65536).split(b"\r\n") if b":wake:" in line]
    if not channels:
        sys.exit("nobody listens")
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    batch = b"".join(encode(b"PUBLISH", channel, text.encode()) for channel in channels) * 200
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        connection.sendall(batch)


main(*sys.argv[1:])
