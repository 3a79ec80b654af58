"""The common part of all topologies."""

import signal

from processes import boottime, send
from servers import PATIENCE


class Topology:
    """`urls` is RLOCK_REDIS for each site of clients: near, and far, which is behind `links`. Remote clients, at the
    other end of a wire, use the same as near ones."""

    safe = {}  # fault -> how often
    lossy = {}
    queues = True  # whether waiters are served in turn
    has_slots = True
    clocks_differ_by = 0  # seconds, at most, between the servers
    variables = {}  # further environment variables for rlock
    most_clients = 150
    longest_lease = 6  # seconds
    watched = False  # whether the servers watch each other: all may be frozen for a moment only, and one fault at a time
    long_layers = 0  # how often a nested run is long, so that much happens meanwhile

    def __init__(self, lab, _lossy):
        self.lab = lab
        self.servers = []
        self.links = []
        self.urls = {}

    def start(self):
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait_ready()

    def victim(self, rng):
        return rng.choice(self.servers)

    def services(self):
        return [*self.servers, *self.links]

    def sites(self):
        return [*self.urls, *(["remote"] if self.lab.wire else [])]

    def url_at(self, site):
        return self.urls["near" if site == "remote" else site]

    def stop(self):
        self.keep_logs()
        for service in self.services():
            if service.pid:
                send(service.pid, signal.SIGKILL)

    def keep_logs(self):
        for server in self.servers:
            server.keep_log()

    def keys(self):
        """All keys on all servers."""
        return sorted({key for server in self.servers for key in server.ask("--raw", "KEYS", "*").splitlines()})


def until(condition):
    """Pauses until the condition holds."""
    deadline = boottime() + PATIENCE
    yield 0.1
    while not condition():
        if boottime() > deadline:
            raise TimeoutError("the servers did not recover from a fault")
        yield 0.2
