"""What the clients talk to: one server, one behind Sentinel, a Cluster, a quorum; and what goes wrong with each.

`safe` are the faults under which no two may hold at once; `lossy` are those that come on top with --lossy, under which a
lock may be lost. The difference is what Redis promises: a server keeps what it has written down, and a replica has what
it was sent, but a primary that is replaced while it lives goes on for a while, and what it grants then is forgotten.
"""

import signal

import faults
from processes import boottime, send
from servers import PATIENCE, Link, Redis, Sentinel, wait_until
from workload import KEYS


class Topology:
    """`urls` is RLOCK_REDIS for each site from which clients come: near, and far behind `links`."""

    safe = {}  # fault -> how often
    lossy = {}
    queues = True  # waiters are served in turn
    variables = {}  # that rlock is to see besides
    most_clients = 150

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

    def stop(self):
        self.keep_logs()
        for service in self.services():
            send(service.pid, signal.SIGKILL)

    def keep_logs(self):
        for server in self.servers:
            server.keep_log()

    def keys(self):
        """All that is stored, anywhere."""
        return sorted({key for server in self.servers for key in server.ask("--raw", "KEYS", "*").splitlines()})


class Single(Topology):
    safe = faults.OF_A_SERVER
    lossy = {faults.delete_lock: 3, faults.step_clock: 1}

    def __init__(self, lab, lossy):
        super().__init__(lab, lossy)
        self.servers = [Redis(lab, "server", clock_error=0 if lossy else None)]

    def start(self):
        super().start()
        self.links = [Link(self.lab, self.servers[0])]
        self.urls = {"near": self.servers[0].url, "far": self.links[0].url}


# ---- Sentinel


def fail_over_by_death(topology, _rng):
    """The old primary comes back when all have agreed on the new one."""
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
    """Two primaries for some seconds."""
    rng.choice(topology.sentinels).tell("SENTINEL", "FAILOVER", "main")
    old = topology.primary()
    yield from until(lambda: topology.primary() not in (None, old))
    yield from until(topology.is_whole)


def freeze_past_fail_over(topology, _rng):
    old = topology.primary()
    old.freeze()
    yield from until(lambda: topology.primary() not in (None, old))
    old.thaw()
    yield from until(topology.is_whole)


def until(condition):
    """Pauses until it holds."""
    deadline = boottime() + PATIENCE
    yield 0.1
    while not condition():
        if boottime() > deadline:
            raise TimeoutError("what failed did not recover")
        yield 0.2


class Sentinels(Topology):
    safe = {
        fail_over_by_death: 3, restart_replica: 1, freeze_replica: 1, freeze_sentinel: 1,
        faults.freeze_shortly: 2, faults.pause_shortly: 2, faults.kill_clients: 2, faults.flush_scripts: 1,
    }  # fmt: skip
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
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.urls = {"near": f"redis-sentinel://{hosts}/main"}

    def services(self):
        return [*super().services(), *self.sentinels]

    def primary(self):
        """In whose name all sentinels agree."""
        named = {sentinel.primary_port() for sentinel in self.sentinels}
        return next((server for server in self.servers if named == {server.port}), None)

    def replica(self):
        primary = self.primary()
        return next(server for server in self.servers if server is not primary)

    def victim(self, _rng):
        return self.primary()

    def start_as_replica(self, server):
        server.start("--replicaof", "127.0.0.1", str(self.primary().port))

    def is_linked(self):
        return any("master_link_status:up" in server.ask("INFO", "replication") for server in self.servers)

    def is_whole(self):
        complete = all("slaves=1,sentinels=3" in sentinel.ask("INFO", "sentinel") for sentinel in self.sentinels)
        return complete and self.is_linked() and self.primary() is not None


# ---- Cluster


def fail_over_on_request(cluster, rng):
    """The primary stops, and hands over what it has."""
    primary = cluster.victim(rng)
    replica = cluster.replica_of(primary)
    replica.tell("CLUSTER", "FAILOVER")
    yield from until(lambda: cluster.is_primary(replica))
    yield from until(cluster.is_whole)


def kill_primary(cluster, rng):
    """Long enough dead for its replica, or not."""
    primary = cluster.victim(rng)
    primary.kill()
    yield rng.choice([rng.uniform(0.1, 1), 4])
    primary.start()
    yield from until(cluster.is_whole)


def migrate_slot(cluster, rng):
    """Key by key, as redis-cli does, with time to stumble between."""
    slot = cluster.slot_of(rng.choice(list(KEYS)))
    source = cluster.owner_of(slot)
    target = rng.choice([server for server in cluster.primaries() if server is not source])
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node)
    yield rng.uniform(0, 1)
    while keys := source.ask("--raw", "CLUSTER", "GETKEYSINSLOT", slot, 100).splitlines():
        source.ask("MIGRATE", "127.0.0.1", target.port, rng.choice(keys), 0, 500)
        yield rng.uniform(0, 0.2)
    for server in [target, source, *cluster.primaries()]:
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", target.node)
    yield from until(cluster.is_whole)


def take_over_from_living(cluster, rng):
    """The replica asks nobody: for a while there are two primaries."""
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
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers[:3])
        self.urls = {"near": f"redis-cluster://{hosts}"}

    def describe_to(self, reader):
        """What the nodes would else have to learn by gossip."""
        lines = []
        for number, server in enumerate(self.servers):
            primary = self.servers[number - 3].node if number >= 3 else "-"
            flags = ("myself," if server is reader else "") + ("slave" if number >= 3 else "master")
            address = f"127.0.0.1:{server.port}@{server.port + 10000}"
            slots = self.slots[number] if number < 3 else ""
            lines.append(f"{server.node} {address} {flags} {primary} 0 0 {number % 3 + 1} connected {slots}\n")
        return "".join(lines) + "vars currentEpoch 6 lastVoteEpoch 0\n"

    def table(self):
        """node -> (flags, primary, link), as the first that answers has it."""
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
        """Three primaries with a replica each, and everybody knows."""
        return all(self.sees_whole(server) for server in self.servers)

    def sees_whole(self, server):
        rows = [row.split() for row in server.ask("--raw", "CLUSTER", "NODES").splitlines()]
        followed = {row[3] for row in rows if "slave" in row[2]}
        healthy = len(rows) == 6 and not any("fail" in row[2] or row[7] != "connected" for row in rows)
        replication = server.ask("INFO", "replication")
        linked = "role:master" in replication or "master_link_status:up" in replication
        return healthy and linked and len(followed) == 3 and "cluster_state:ok" in server.ask("CLUSTER", "INFO")


# ---- quorum


def restart_empty(topology, rng):
    """It does not vote until it is older than every lease that it has forgotten."""
    server = topology.victim(rng)
    server.kill()
    yield max(0.1, faults.outage(rng))
    server.forget()
    server.start()
    yield 0.1


def freeze_majority(topology, rng):
    frozen = rng.sample(topology.servers, 2)
    for server in frozen:
        server.freeze()
    yield faults.outage(rng)
    for server in frozen:
        server.thaw()


class Quorum(Topology):
    safe = faults.OF_A_SERVER | {restart_empty: 2, freeze_majority: 1}
    lossy = {faults.delete_lock: 3}
    variables = {"RLOCK_MAX_LEASE": "4s"}
    clock_errors = [0, 1, -1]  # seconds: less apart than the longest lease
    queues = False
    most_clients = 60

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


TOPOLOGIES = {"single": Single, "sentinel": Sentinels, "cluster": Cluster, "quorum": Quorum}
