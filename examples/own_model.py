"""A model of your own in a durable run: four methods, and TAILOR trains it each round.

Probabilities fall with the distance to the mean of each class.
    python examples/own_model.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_digits

from tailor import Model, Session, Settings, open_pool
from tailor.models import Prediction, quiet
from tailor.storage import SqliteStore


class NearestMean(Model):
    def fit(self, positions, labels, *, seed, progress=quiet):  # (n,), (n, K) of 0 and 1
        self.means = labels.T @ self._vectors(positions) / np.maximum(labels.sum(0), 1)[:, None]
        self.seen = labels.sum(0) > 0

    def predict(self, positions, progress=quiet):
        vectors = self._vectors(positions)
        distances = np.linalg.norm(vectors[:, None] - self.means, axis=2)
        powers = np.exp(distances.min(1, keepdims=True) - distances) * self.seen
        return Prediction(powers / powers.sum(1, keepdims=True), vectors)

    def save(self, folder):
        save_file({"means": self.means, "seen": self.seen}, folder / "means.safetensors")

    def load(self, folder):
        saved = load_file(folder / "means.safetensors")
        self.means = saved["means"]
        self.seen = saved["seen"]

    def _vectors(self, positions):
        return np.stack(self.pool.read(positions)).astype(np.float32)


def main() -> None:
    pixels, digits = load_digits(return_X_y=True)
    pool = open_pool((pixels / 16).astype(np.float32))
    settings = Settings("multi-class", tuple("0123456789"), batch=40)
    model = NearestMean(settings.task, pool)
    with SqliteStore(Path(mkdtemp()) / "run.db") as store:
        session = Session(store, pool, model, settings)
        for _ in range(4):
            session.tell({pick.id: str(digits[int(pick.id)]) for pick in session.ask()})
            session.final_fit()
            predicted = model.predict(np.arange(len(pool))).probs.argmax(1)
            print(f"accuracy {np.mean(predicted == digits):.3f}")


if __name__ == "__main__":
    main()
