"""Where heavy work runs: this process, or a Ray cluster. The picks are the same."""

from tailor.engine.base import Engine, LocalEngine
from tailor.engine.shards import SHARD, Predictions
from tailor.engine.view import Sharded, ShardedView

__all__ = ["SHARD", "Engine", "LocalEngine", "Predictions", "Sharded", "ShardedView"]
