"""The galaxy family: line graphs of the sorted pool, one a class, cut where labels change."""
