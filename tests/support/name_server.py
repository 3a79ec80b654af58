"""A name server for `in_own_network`. It knows the names that it was given, and says that no others exist.

    name_server.py ADDRESS NAME=ADDRESS...

It listens on port 53 of the first address; a name may be given several times."""

import ipaddress
import socket
import struct
import sys

TYPES = {4: 1, 6: 28}  # A and AAAA
NO_SUCH_NAME = 3


def question_of(query):
    """The bytes of the question, its name and its type."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
    return query[12 : at + 5], ".".join(labels).lower(), kind


def answer(query, table):
    question, name, kind = question_of(query)
    found = [address for address in table.get(name, ()) if TYPES[address.version] == kind]
    flags = 0x8180 if name in table else 0x8180 | NO_SUCH_NAME
    header = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
    records = [struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(a.packed)) + a.packed for a in found]
    return header + question + b"".join(records)


def main(listen, *entries):
    table = {}
    for entry in entries:
        name, address = entry.split("=")
        table.setdefault(name, []).append(ipaddress.ip_address(address))
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((listen, 53))
    while True:
        query, client = server.recvfrom(512)
        server.sendto(answer(query, table), client)


main(*sys.argv[1:])
