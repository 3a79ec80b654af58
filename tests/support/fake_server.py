#!/usr/bin/env python3
"""Listens, prints its port, answers every connection as MODE says, and prints what it was sent.

    fake_server.py garbage|partial|endless|nested|wide|silent|closing|ok|protected|stuck|odd|flood|forgetful|lualess|master HOST:PORT|auth|moved

`master` is a sentinel that always names HOST:PORT; `auth` accepts a password after a while, and answers nothing else;
`forgetful` is a member of a quorum that has lost every lock, and does not answer when it is given one back;
`lualess` has no scripting engine;
`moved` is a node of a cluster that redirects every key to itself. SCAN is answered by `stuck` with an endless cursor, by
`odd` with an error inside an array, and by `flood` with 10 MB of names each time.
"""

import re
import socket
import sys
import threading
import time

FIXED = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n<html>\x00\xff</html>\r\n",
    "partial": b"*3\r\n$7\r\ngranted\r\n$5\r\n12",
    "nested": b"*1\r\n" * 1_000_000,
    "wide": b"*2147483647\r\n",
    "silent": b"",
    "ok": b"+OK\r\n",
    "protected": b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n",
    "stuck": b"*2\r\n$1\r\n7\r\n*0\r\n",
    "odd": b"*2\r\n-ERR 7\r\n*0\r\n",
}


def endless(connection):
    connection.sendall(b"$500000000\r\n")
    while True:
        connection.sendall(b"x" * 65536)


def flood(connection):
    cursor = b"%d" % time.monotonic_ns()
    name = b"$506\r\nrlock:" + b"x" * 500 + b"\r\n"
    connection.sendall(b"*2\r\n$%d\r\n%s\r\n*20000\r\n" % (len(cursor), cursor) + name * 20000)


def master(connection):
    host, _, port = sys.argv[2].rpartition(":")
    connection.sendall(b"*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(host), host.encode(), len(port), port.encode()))


def auth(_):
    time.sleep(0.3)


def moved(connection, data):
    commands = len(re.findall(rb"^\*\d+\r$", data, re.MULTILINE))
    connection.sendall(b"-MOVED 1234 127.0.0.1:%d\r\n" % listening.getsockname()[1] * commands)


def lualess(connection, data):
    for command in re.findall(rb"^(EVALSHA|EVAL|SCRIPT|SUBSCRIBE|UNSUBSCRIBE)\r$", data, re.MULTILINE):
        known = b"-NOSCRIPT No matching script." if command == b"EVALSHA" else b"-ERR Could not find scripting engine 'lua'"
        connection.sendall(known + b"\r\n")


def forgetful(connection, data):
    if re.match(rb"(.*\r\n){5}\$1\r\n1\r\n", data):  # one key: a renewal
        connection.sendall(b"*1\r\n$4\r\nlost\r\n")
    elif b"\r\nrestore\r\n" not in data:
        connection.sendall(b"-ERR not now\r\n")


def serve(connection):
    mode = sys.argv[1]
    try:
        while data := connection.recv(65536):
            print(data, flush=True)
            if mode == "closing":
                break
            if mode in FIXED:
                connection.sendall(FIXED[mode])
                if mode == "protected":  # as Redis does: one answer, and the end
                    break
            elif mode in ("moved", "forgetful", "lualess"):
                globals()[mode](connection, data)
            else:
                globals()[mode](connection)
            if mode == "auth":
                connection.sendall(b"+OK\r\n" if data.count(b"\r\n") == 5 else b"-ERR no\r\n")
    except OSError:
        pass
    connection.close()


listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
