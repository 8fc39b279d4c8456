"""The galaxy families: line graphs of the sorted pool, one a class, cut where labels change.

galaxy.py and galaxy_all.py hold the two families. A line (line_graph.py, compiled parts in
cut_search.py, bit_set.py and heap.py) is built over the few examples that can lie in a cut
(line_segment.py, label_changes.py, segment_hits.py), in memory (class_graph.py) or over shards
(over_shards.py, sharded_graph.py, live_graph.py).
"""
