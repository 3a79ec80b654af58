"""What the clients talk to: one server, one behind Sentinel, a Cluster or a quorum; and the faults of each.

`safe` are the faults under which no two may hold at once; `lossy` are those that come on top with --lossy, under which a
lock may be lost. The difference is what Redis promises: a server keeps what it has written down, and a replica has what
it was sent, but a primary that is replaced while it lives goes on for a while, and what it grants then is forgotten.
"""

import faults
from cluster import Cluster
from quorum import Quorum
from sentinel import Sentinels
from servers import Link, Redis
from topology import Topology


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


TOPOLOGIES = {"single": Single, "sentinel": Sentinels, "cluster": Cluster, "quorum": Quorum}
