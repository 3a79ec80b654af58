"""A Cluster: three primaries, each with a replica."""

import faults
from servers import Redis, wait_until
from topology import Topology, until
from workload import KEYS


def fail_over_on_request(cluster, rng):
    """The primary hands over what it has to its replica, and steps down."""
    primary = cluster.victim(rng)
    replica = cluster.replica_of(primary)
    replica.tell("CLUSTER", "FAILOVER")
    yield from until(lambda: cluster.is_primary(replica))
    yield from until(cluster.is_whole)


def kill_primary(cluster, rng):
    """Kills a primary, for long enough that its replica takes over, or not."""
    primary = cluster.victim(rng)
    primary.kill()
    yield rng.choice([rng.uniform(0.1, 1), 4])
    primary.start()
    yield from until(cluster.is_whole)


def migrate_slot(cluster, rng):
    """Moves a slot key by key, as redis-cli does, with pauses in which clients can stumble."""
    slot = cluster.slot_of(rng.choice(list(KEYS)))
    source = cluster.owner_of(slot)
    target = rng.choice([server for server in cluster.primaries() if server is not source])
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node)
    yield rng.uniform(0, 1)
    while keys := source.ask("--raw", "CLUSTER", "GETKEYSINSLOT", slot, 100).splitlines():
        # One that was not answered in time is on both servers, and the source's is the newer.
        source.ask("MIGRATE", target.lab.address, target.port, rng.choice(keys), 0, 500, "REPLACE")
        yield rng.uniform(0, 0.2)
    for server in [target, source, *cluster.primaries()]:
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", target.node)
    yield from until(cluster.is_whole)


def take_over_from_living(cluster, rng):
    """The replica takes over without asking anybody, so that for a while there are two primaries."""
    primary = cluster.victim(rng)
    replica = cluster.replica_of(primary)
    replica.tell("CLUSTER", "FAILOVER", "TAKEOVER")
    yield from until(lambda: cluster.is_primary(replica))
    yield from until(cluster.is_whole)


class Cluster(Topology):
    safe = {
        fail_over_on_request: 2, kill_primary: 2, migrate_slot: 4,
        faults.freeze_shortly: 2, faults.pause_shortly: 2, faults.kill_clients: 2, faults.flush_scripts: 1,
    }  # fmt: skip
    watched = True
    lossy = {take_over_from_living: 2, faults.delete_lock: 2}
    slots = ["0-5460", "5461-10922", "10923-16383"]

    def __init__(self, lab, lossy):
        super().__init__(lab, lossy)
        options = [
            "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
            "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0",
        ]  # fmt: skip
        self.servers = [Redis(lab, f"node{n}", *options) for n in range(6)]
        for number, server in enumerate(self.servers):
            server.node = f"{number + 1:040x}"

    def start(self):
        for server in self.servers:
            (server.folder / "nodes.conf").write_text(self.describe_to(server), encoding="ascii")
        super().start()
        wait_until(self.is_whole, "the cluster is whole")
        hosts = ",".join(server.host for server in self.servers[:3])
        self.urls = {"near": f"redis-cluster://{hosts}"}

    def describe_to(self, reader):
        """What the nodes would otherwise learn by gossip."""
        lines = []
        for number, server in enumerate(self.servers):
            primary = self.servers[number - 3].node if number >= 3 else "-"
            flags = ("myself," if server is reader else "") + ("slave" if number >= 3 else "master")
            address = f"{server.host}@{server.port + 10000}"
            slots = self.slots[number] if number < 3 else ""
            lines.append(f"{server.node} {address} {flags} {primary} 0 0 {number % 3 + 1} connected {slots}\n")
        return "".join(lines) + "vars currentEpoch 6 lastVoteEpoch 0\n"

    def table(self):
        """Returns node -> (flags, primary, link), as the first node that answers sees it."""
        for server in self.servers:
            rows = [row.split() for row in server.ask("--raw", "CLUSTER", "NODES").splitlines()]
            if rows:
                return {row[0]: row[2:4] + row[7:] for row in rows}
        return {}

    def primaries(self):
        rows = self.table()
        return [s for s in self.servers if s.node in rows and "master" in rows[s.node][0] and len(rows[s.node]) > 3]

    def is_primary(self, server):
        return server in self.primaries()

    def victim(self, rng):
        return rng.choice(self.primaries())

    def replica_of(self, primary):
        rows = self.table()
        return next(server for server in self.servers if rows[server.node][1] == primary.node)

    def slot_of(self, key):
        return int(self.servers[0].ask("CLUSTER", "KEYSLOT", f"rlock:{key}"))

    def owner_of(self, slot):
        return next(server for server in self.primaries() if server.owns(slot))

    def is_whole(self):
        """Whether there are three primaries with a replica each, and all nodes know it."""
        return all(self.sees_whole(server) for server in self.servers)

    def sees_whole(self, server):
        rows = [row.split() for row in server.ask("--raw", "CLUSTER", "NODES").splitlines()]
        followed = {row[3] for row in rows if "slave" in row[2]}
        healthy = len(rows) == 6 and not any("fail" in row[2] or row[7] != "connected" for row in rows)
        replication = server.ask("INFO", "replication")
        linked = "role:master" in replication or "master_link_status:up" in replication
        return healthy and linked and len(followed) == 3 and "cluster_state:ok" in server.ask("CLUSTER", "INFO")
