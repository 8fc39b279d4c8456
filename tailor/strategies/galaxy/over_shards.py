"""The lines of a pool in shards: one visit to every shard for all classes."""

from __future__ import annotations

from collections.abc import Sequence

from tailor.selection.pool_view import PoolView, ShardVisitor
from tailor.strategies.galaxy.line_builder import LineBuilder
from tailor.strategies.galaxy.line_segment import segments_in_ranges
from tailor.strategies.galaxy.live_graph import LiveGraph
from tailor.strategies.galaxy.live_line_builder import LiveLineBuilder
from tailor.strategies.galaxy.sharded_graph import ShardedGraph


def graphs_over_shards(
    view: PoolView,
    shards: ShardVisitor,
    pending: str,
    classes: list[int],
    together: bool,
) -> Sequence[ShardedGraph]:
    """The line of each class. together: one cursor takes from all of them."""
    if pending != "split":
        return _live_graphs(
            view,
            shards,
            pending,
            classes,
            together,
        )
    builder = LineBuilder(view, pending)
    ranges = {klass: builder.open_ranges(klass) for klass in classes}
    segments = segments_in_ranges(ranges, shards.visit)
    graphs = []
    for klass in classes:
        segment = segments[klass]
        line = builder.line(segment.ids, klass)
        graph = ShardedGraph(
            builder,
            shards,
            klass,
            line,
        )
        graphs.append(graph)
    if together:
        for graph in graphs:
            graph.together = graphs
    return graphs


def _live_graphs(
    view: PoolView,
    shards: ShardVisitor,
    pending: str,
    classes: list[int],
    together: bool,
) -> Sequence[LiveGraph]:
    """As graphs_over_shards, where labels stand in or come during the round."""
    builder = LiveLineBuilder(view, pending)
    ranges = {klass: builder.first_ranges(klass) for klass in classes}
    segments = segments_in_ranges(ranges, shards.visit)
    graphs = []
    for klass in classes:
        graph = LiveGraph(
            builder,
            shards,
            klass,
            fetched=ranges[klass],
            segment=segments[klass],
        )
        graphs.append(graph)
    if together:
        for graph in graphs:
            graph.together = graphs
    return graphs
