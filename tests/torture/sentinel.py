"""One server behind Sentinel: a primary, a replica, three sentinels."""

import faults
from servers import Redis, Sentinel, wait_until
from topology import Topology, until


def fail_over_by_death(topology, _rng):
    """Kills the primary, which comes back once all have agreed on the new one."""
    yield from until(topology.primary)  # on which sentinels without processor time need not agree
    old = topology.primary()
    old.kill()
    yield from until(lambda: topology.primary() not in (None, old))
    yield 0.5
    topology.start_as_replica(old)
    yield from until(topology.is_whole)


def restart_replica(topology, rng):
    replica = topology.replica()
    replica.kill()
    yield faults.outage(rng)
    topology.start_as_replica(replica)
    yield from until(topology.is_whole)


def freeze_replica(topology, rng):
    replica = topology.replica()
    replica.freeze()
    yield faults.outage(rng)
    replica.thaw()
    yield from until(topology.is_whole)


def freeze_sentinel(topology, rng):
    sentinel = rng.choice(topology.sentinels)
    sentinel.freeze()
    yield faults.outage(rng)
    sentinel.thaw()
    yield 0.5


def fail_over_alive(topology, rng):
    """Makes two primaries for some seconds."""
    rng.choice(topology.sentinels).tell("SENTINEL", "FAILOVER", "main")
    old = topology.primary()
    yield from until(lambda: topology.primary() not in (None, old))
    yield from until(topology.is_whole)


def freeze_past_fail_over(topology, _rng):
    yield from until(topology.primary)
    old = topology.primary()
    old.freeze()
    yield from until(lambda: topology.primary() not in (None, old))
    old.thaw()
    yield from until(topology.is_whole)


class Sentinels(Topology):
    safe = {
        fail_over_by_death: 3, restart_replica: 1, freeze_replica: 1, freeze_sentinel: 1,
        faults.freeze_shortly: 2, faults.pause_shortly: 2, faults.kill_clients: 2, faults.flush_scripts: 1,
    }  # fmt: skip
    watched = True
    lossy = {fail_over_alive: 1, freeze_past_fail_over: 1, faults.delete_lock: 2}

    def __init__(self, lab, lossy):
        super().__init__(lab, lossy)
        self.servers = [Redis(lab, name, "--repl-diskless-sync-delay", "0") for name in ("one", "two")]
        self.sentinels = []

    def start(self):
        super().start()
        self.servers[1].follow(self.servers[0])
        wait_until(self.is_linked, "the replica is linked")
        self.sentinels = [Sentinel(self.lab, f"sentinel{n}", self.servers[0]) for n in range(3)]
        for sentinel in self.sentinels:
            sentinel.start()
        wait_until(self.is_whole, "the sentinels know each other")
        hosts = ",".join(sentinel.host for sentinel in self.sentinels)
        self.urls = {"near": f"redis-sentinel://{hosts}/main"}

    def services(self):
        return [*super().services(), *self.sentinels]

    def primary(self):
        """The primary on which all sentinels agree."""
        named = {sentinel.primary_port() for sentinel in self.sentinels}
        return next((server for server in self.servers if named == {server.port}), None)

    def replica(self):
        primary = self.primary()
        return next(server for server in self.servers if server is not primary)

    def victim(self, rng):
        return self.primary() or rng.choice(self.servers)

    def start_as_replica(self, server):
        """Of the other server, whatever the sentinels think by now."""
        (other,) = (one for one in self.servers if one is not server)
        server.start("--replicaof", self.lab.address, str(other.port))

    def is_linked(self):
        return any("master_link_status:up" in server.ask("INFO", "replication") for server in self.servers)

    def is_whole(self):
        complete = all("slaves=1,sentinels=3" in sentinel.ask("INFO", "sentinel") for sentinel in self.sentinels)
        return complete and self.is_linked() and self.primary() is not None
