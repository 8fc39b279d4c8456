"""Where heavy work runs: this process, or a Ray cluster. The picks are the same."""

from tailor.compute.base import Engine, LocalEngine
from tailor.compute.prediction_shards import SHARD, Predictions
from tailor.compute.sharded_view import Sharded, ShardedView

__all__ = ["SHARD", "Engine", "LocalEngine", "Predictions", "Sharded", "ShardedView"]
