import sys
from pathlib import Path

# Coordinators over a small pool.
for folder in ("annotation", "run"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
