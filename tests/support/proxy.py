#!/usr/bin/env python3
"""A network that can be told how to fail.

    proxy.py PORT FIFO

Passes connections on to 127.0.0.1:PORT, prints the port that it listens on, and obeys the lines that it reads from the
FIFO; it prints each as an acknowledgement:

    pass          works like a good network
    delay SECONDS delays replies
    drop          lets requests through but withholds replies until `pass`, when they arrive late
    deaf          withholds requests instead
    dark          withholds both
    cut [COUNT]   loses the next COUNT replies (1), with their connections; then works like `pass`
    split SECONDS delays a SUBSCRIBE for SECONDS after the request that it follows
    strand        lets nothing more through on the present connections; new ones work
    inject BYTES  sends this on the present connections as if the server had sent it (written as in Python)
    forge OLD NEW from now on replaces OLD by NEW in replies (both written as in Python)
    misspell OLD NEW   the same in requests
    detain        withholds requests on the present connections until the next line; new connections work
"""

import asyncio
import sys

WITHHELD = {"drop": {True}, "deaf": {False}, "dark": {True, False}}  # of replies, of requests


class Network:
    def __init__(self, port):
        self.port = port
        self.mode, self.delay, self.pause, self.cuts = "pass", 0.0, 0.0, 0
        self.forgery = {True: (b"", b""), False: (b"", b"")}  # of replies, of requests
        self.stranded, self.detained = set(), set()
        self.open = set()
        self.changed = asyncio.Event()

    async def accept(self, client_reader, client):
        try:
            server_reader, server = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            client.close()
            return
        ends = (client, server)
        self.open.add(ends)
        await asyncio.gather(self.carry(client_reader, server, ends), self.carry(server_reader, client, ends, True))

    async def carry(self, source, target, ends, is_reply=False):
        try:
            while data := await source.read(65536):
                if self.arrives(ends, is_reply):
                    await self.journey(ends, is_reply)
                    old, new = self.forgery[is_reply]
                    data = data.replace(old, new) if old else data
                    await self.deliver(data, target, is_reply)
        except OSError:
            pass
        for end in ends if ends not in self.stranded else ():
            end.close()

    async def deliver(self, data, target, is_reply):
        request, subscribe, channel = data.partition(b"*2\r\n$9\r\nSUBSCRIBE\r\n")
        if self.mode == "split" and not is_reply and request and subscribe:
            target.write(request)
            await asyncio.sleep(self.pause)
            data = subscribe + channel
        target.write(data)

    def arrives(self, ends, is_reply):
        if is_reply and self.cuts > 0:
            self.cuts -= 1
            raise ConnectionResetError
        return ends not in self.stranded

    async def journey(self, ends, is_reply):
        await asyncio.sleep(self.delay if is_reply else 0)
        while is_reply in WITHHELD.get(self.mode, ()) or (ends in self.detained and not is_reply):
            await self.changed.wait()

    def obey(self, line):
        self.mode, *rest = line.split()
        self.delay = float(*rest) if self.mode == "delay" else 0.0
        self.pause = float(*rest) if self.mode == "split" else 0.0
        if self.mode == "cut":
            self.cuts = int(*(rest or [1]))
        elif self.mode == "inject":
            for client, _ in self.open:
                client.write(unescape(rest[0]))
        elif self.mode in ("forge", "misspell"):
            self.forgery[self.mode == "forge"] = tuple(map(unescape, rest))
        if self.mode == "strand":
            self.stranded |= self.open
        self.detained = set(self.open) if self.mode == "detain" else set()
        self.changed.set()
        self.changed = asyncio.Event()
        print(line, end="", flush=True)


def unescape(text):
    return text.encode().decode("unicode_escape").encode()


async def main(port, fifo):
    network = Network(port)
    listening = await asyncio.start_server(network.accept, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    orders = open(fifo, encoding="ascii")
    asyncio.get_running_loop().add_reader(orders, lambda: network.obey(orders.readline()))
    await listening.serve_forever()


asyncio.run(main(*sys.argv[1:]))
