#!/usr/bin/env python3
"""Listens, prints its port, answers every connection as MODE says, and prints what it was sent.

    fake_server.py garbage|partial|endless|nested|wide|silent|closing|ok|protected|stuck|odd|flood|forgetful|lualess|master HOST:PORT|auth|moved
    fake_server.py cancelling|forgetting|crowd|holds|targets|sprawl|parrot WORDS

`master` is a sentinel that always names HOST:PORT; `auth` accepts a password after a while, and answers nothing else;
`forgetful` is a member of a quorum that has lost every lock, and does not answer when it is given one back;
`lualess` has no scripting engine;
`moved` is a node of a cluster that redirects every key to itself. SCAN is answered by `stuck` with an endless cursor, by
`odd` with an error inside an array, and by `flood` with 10 MB of names each time.

`cancelling` says of each question that it was called off.

These answer far more than was asked for: `forgetting` sends 15 MB about each of 12 locks, and forgets the script
each time; `crowd` names 3,900 holders of each of 120 locks, in few bytes; `holds` knows 150,000 holds in the
past, `targets` 60,000 holders that it has removed, and `sprawl` a cluster of 65,000 nodes. `parrot` accepts a password
and answers everything else with the error WORDS.
"""

import re
import socket
import sys
import threading
import time

FIXED = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n<html>\x00\xff</html>\r\n",
    "alert": b"\x15\x03\x03\x00\x02\x02\x46",
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


def text(words):
    return b"$%d\r\n%s\r\n" % (len(words), words)


def array(*words):
    return b"*%d\r\n" % len(words) + b"".join(map(text, words))


ANSWERS = {
    "cancelling": lambda: array(b"cancelled"),
    "forgetting": lambda: array(b"held", b"1", b"1", b"x" * 15_000_000),
    "crowd": lambda: array(b"held", b"1", b"1", *[b"holder"] * 3900),
    "holds": lambda: array(b"history", b"2", *[b"hold %012x0 1 1 1 ffffffffffff x a b c 1 d e" % i for i in range(150_000)]),
    "targets": lambda: array(b"holders", *[b"%d removed 1 1 a b c 1 d e" % i for i in range(60_000)]),
}
asked = []


def excessive(connection, data):
    mode = sys.argv[1]
    for command in re.findall(rb"^(SCAN|INFO|SCRIPT|EVALSHA)\r$", data, re.MULTILINE):
        if command == b"SCAN":
            names = array(*[b"rlock:%d" % i for i in range(12 if mode == "forgetting" else 120)])
            connection.sendall(b"*2\r\n" + text(b"0") + names)
            continue
        if command == b"INFO":
            connection.sendall(text(b"role:master"))
            continue
        asked.append(command)
        if command == b"SCRIPT":
            connection.sendall(text(b"0" * 40))
        elif mode == "forgetting" and asked[-2:-1] != [b"SCRIPT"]:
            connection.sendall(b"-NOSCRIPT No matching script.\r\n")
        elif mode == "targets" and len(asked) == 2:  # who is next?
            connection.sendall(array(b"free", b"1", b"0"))
        else:
            connection.sendall(ANSWERS[mode]())


def sprawl(connection, data):
    nodes = b"".join(b"i :%d@1 s\n" % (1 + i) for i in range(65_000))
    for command in re.findall(rb"^(CLUSTER|EVALSHA|EVAL|SCRIPT)\r$", data, re.MULTILINE):
        connection.sendall(text(nodes) if command == b"CLUSTER" else b"-CLUSTERDOWN x\r\n")


def parrot(connection, data):
    for command in re.findall(rb"^(AUTH|SELECT|CLUSTER|SUBSCRIBE|UNSUBSCRIBE|EVALSHA|EVAL|SCRIPT)\r$", data, re.MULTILINE):
        connection.sendall(b"+OK\r\n" if command == b"AUTH" else b"-%s\r\n" % sys.argv[2].encode())


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
            elif mode in ANSWERS:
                excessive(connection, data)
            elif mode in ("moved", "forgetful", "lualess", "sprawl", "parrot"):
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
