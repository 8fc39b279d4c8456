"""How much do mistakes of the annotators cost?

The same data is labelled three times by simulated annotators who are wrong at different rates.

    python examples/simulate_annotators.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from tailor import MultiClass, open_run
from tailor.annotation.simulated import KnownLabels, NoisyAnnotator


def main() -> None:
    pixels, digits = load_digits(return_X_y=True)
    pixels, digits = pixels[:800], digits[:800]
    folder = Path(tempfile.mkdtemp())
    np.save(folder / "digits.npy", (pixels / 16).astype(np.float32))
    classes = [str(digit) for digit in range(10)]
    truth = KnownLabels({str(row): classes[digit] for row, digit in enumerate(digits)})
    for rate in (0.0, 0.1, 0.3):
        annotator = NoisyAnnotator(truth, MultiClass(classes), rate, seed=1)
        with open_run(
            folder / "digits.npy",
            classes=classes,
            run=folder / f"wrong-{rate}",
            batch=50,
            budget=150,
        ) as run:
            while asked := run.ask():
                run.tell(annotator.answer(asked.ids), by="simulated")
            predicted = np.array([int(name) for name in run.predict().classes])
        print(f"{rate:.0%} wrong answers: accuracy {(predicted == digits).mean():.3f}")


if __name__ == "__main__":
    main()
