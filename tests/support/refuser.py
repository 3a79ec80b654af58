#!/usr/bin/env python3
"""Answers every request with one line: refuser.py PORT-FILE LINE. Writes its port to PORT-FILE."""
import socket
import sys
import threading

port_file, line = sys.argv[1:]
answer = line.encode() + b"\r\n"


def talk(connection):
    with connection:
        while connection.recv(65536):
            connection.sendall(answer)


with socket.create_server(("127.0.0.1", 0)) as server:
    with open(port_file, "w", encoding="utf-8") as file:
        print(server.getsockname()[1], file=file)
    while True:
        threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()
