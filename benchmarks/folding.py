"""Pictures a second through a network, with its batch norms and with them folded into the
convolutions.

    python benchmarks/folding.py

The network alone, on the CPU, in batches of 32 as features are computed; the best of fifteen tries
of each, in turn.
"""

from __future__ import annotations

import time

import torch

from tailor.models.efficientnet_lite import EfficientNetLite0
from tailor.models.folding import fold_batch_norms
from tailor.models.resnet import ResNet18

BATCH, TRIES = 32, 15


def main() -> None:
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    print("| network | pixels | batch norms | folded |\n|---|---|---|---|")
    for make in (EfficientNetLite0, ResNet18):
        for pixels in (128, 224):
            net = make(10).eval().to(memory_format=torch.channels_last)
            x = torch.randn(BATCH, 3, pixels, pixels).contiguous(memory_format=torch.channels_last)
            best = {"plain": 0.0, "folded": 0.0}
            with torch.inference_mode():
                for _ in range(TRIES + 1):  # the first only warms up
                    for name, network in (("plain", net), ("folded", fold_batch_norms(net))):
                        start = time.perf_counter()
                        network(x)
                        best[name] = max(best[name], BATCH / (time.perf_counter() - start))
            print(
                f"| {make.__name__} | {pixels} | {best['plain']:.0f} | {best['folded']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
