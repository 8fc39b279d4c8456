"""A Ray cluster of several nodes on this machine: loopback alone, token authentication on, no
dashboard.
"""

from __future__ import annotations

NODE = {"object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}


class Nodes:
    """A head without cores of its own, and `count` nodes with one core each."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False}
        )
        self.nodes = [self.add() for _ in range(count)]

    @property
    def address(self) -> str:
        return self.cluster.address

    def add(self, num_cpus: int = 1):
        return self.cluster.add_node(**NODE, num_cpus=num_cpus)

    def remove(self, node) -> None:
        """The node is lost, without a word."""
        self.cluster.remove_node(node, allow_graceful=False)

    def stop(self) -> None:
        import ray

        ray.shutdown()
        self.cluster.shutdown()
