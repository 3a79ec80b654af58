"""Three servers that do not know of each other, and whose clocks differ."""

import faults
from servers import Link, Redis, wait_until
from topology import Topology


LEARNING = 6.5  # seconds: --max-lease, one second for the rounding of uptimes, and a renewal


def restart_empty(topology, rng):
    """Restarts a server empty: it does not vote until it is older than every lease that it has forgotten."""
    server = topology.victim(rng)
    server.kill()
    yield max(0.1, faults.outage(rng))
    server.forget()
    server.start()
    yield 0.1


def restart_in_turn(topology, rng):
    """Restarts two servers, the second after the first has had time to learn again every level of the held locks."""
    for server in rng.sample(topology.servers, 2):
        server.kill()
        yield 0.1
        server.forget()
        server.start()
        yield LEARNING + rng.uniform(0, 1)


def set_clock_back(topology, rng):
    """Sets one server's clock back, but not so far that it differs from the others by more than the longest lease."""
    server = topology.servers[-1]
    if server.clock_error < -2:
        return
    server.set_clock(server.clock_error - rng.uniform(0.1, 0.5))
    yield 0.1


def freeze_majority(topology, rng):
    frozen = rng.sample(topology.servers, 2)
    for server in frozen:
        server.freeze()
    yield faults.outage(rng)
    for server in frozen:
        server.thaw()


class Quorum(Topology):
    safe = faults.OF_A_SERVER | {restart_empty: 2, restart_in_turn: 1, freeze_majority: 1, set_clock_back: 1}
    lossy = {faults.delete_lock: 3, faults.step_clock: 1}
    variables = {"RLOCK_MAX_LEASE": "4s"}
    longest_lease = 4
    clock_errors = [0, 1, -1]  # seconds; they differ by less than the longest lease
    clocks_differ_by = 3.5  # one of them is set back by up to 1.5
    queues = has_slots = False
    most_clients = 60
    long_layers = 0.2

    def __init__(self, lab, lossy):
        super().__init__(lab, lossy)
        self.servers = [Redis(lab, f"server{n}", clock_error=error) for n, error in enumerate(self.clock_errors)]

    def start(self):
        super().start()
        self.links = [Link(self.lab, server) for server in self.servers]
        self.urls = {
            "near": " ".join(server.url for server in self.servers),
            "far": " ".join(link.url for link in self.links),
        }
        wait_until(lambda: all(server.uptime() > 5 for server in self.servers), "the servers are old enough to vote")
