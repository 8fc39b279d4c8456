"""How long a first batch takes that covers the pool:

    python benchmarks/first_batch.py SIZE [--device cuda] [--pool N]

SIZE is one of `tailor bench selection`'s; coco and celeba, which have no features there, get 512.
Prints a JSON object with wall and processor seconds: on a machine that others use too, the latter
say more. Families are measured by `tailor bench selection --families`.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from tailor.capacity.device import device_name, now
from tailor.capacity.synthetic_pool import find_size, make_pool
from tailor.selection.coverage_start import coverage_start

#: examples of the first batch
START = 1000


def measure(features: np.ndarray, device: str) -> dict:
    """A first batch of up to START examples of features (N, d)."""
    started = now(device)
    processor_started = time.process_time()
    chosen = coverage_start(
        features.__getitem__,
        np.arange(len(features)),
        min(START, len(features)),
        around=np.empty(0, np.int64),
        seed=0,
        device=device,
    )
    return {
        "seconds": round(now(device) - started, 2),
        "processor_seconds": round(time.process_time() - processor_started, 2),
        "picks": len(chosen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pool", type=int)
    options = parser.parse_args()
    # The probabilities play no part: with two classes they take little memory.
    size = replace(find_size(options.size), features=512, classes=2, multilabel=False)
    if options.pool:
        size = replace(size, pool=options.pool)
    features = make_pool(size).features
    assert features is not None
    measure(features[:300], options.device)  # the device is awake now
    row = measure(features, options.device)
    print(json.dumps({**row, "pool": size.pool, "device": device_name(options.device)}))


if __name__ == "__main__":
    main()
