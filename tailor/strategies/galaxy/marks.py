"""What stands at the positions of a line, and in place of labels."""

from __future__ import annotations

#: what stands at a position of the line
FREE = 0
PENDING = 1
LABELLED = 2
#: in place of a label
NO_LABEL = -1
WITHDRAWN = -2
#: positions fit in 31 bits, so that a heap's key holds one beside a length
POSITION_MASK = 0x7FFFFFFF
