"""Our badge and FLQMI beside other libraries, in one run on one machine.

pip install submodlib-py scikit-activeml
python benchmarks/peers.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tailor import ArrayView, MultiClass
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor.strategies.gradient_embeddings import cosines, parts, unit_parts
from tailor.strategies.submodular import Submodular


def seconds(job: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        job()
        times.append(time.perf_counter() - started)
    return sorted(times)[repeats // 2]


def badge(pool: int = 20_000, classes: int = 10, width: int = 64, batch: int = 500) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(classes, 0.3), pool)
    features = np.maximum(rng.standard_normal((pool, width)), 0)
    task = MultiClass(classes)
    arms = make_arms(["badge"], task)

    def ours() -> None:
        Round(
            ArrayView(task, probs, features),
            arms,
            np.zeros(batch, int),
            0,
        ).batch()

    print(f"badge, N = {pool}, K = {classes}, d = {width}, B = {batch}")
    print(f"  tailor                                  {seconds(ours):8.3f} s")

    from sklearn.cluster import kmeans_plusplus

    own = np.eye(classes)[probs.argmax(1)]

    def explicit() -> None:
        embedding = ((probs - own)[:, :, None] * features[:, None, :]).reshape(pool, -1)
        kmeans_plusplus(embedding, batch, random_state=0)

    print(f"  scikit-learn kmeans_plusplus, explicit  {seconds(explicit):8.3f} s")
    try:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import Badge
        from sklearn.base import BaseEstimator, ClassifierMixin
    except ImportError:
        print("  scikit-activeml is not installed")
        return

    class Given(ClassifierMixin, BaseEstimator):
        """Gives the probabilities above, whatever it is fitted on."""

        def fit(self, X: np.ndarray, y: np.ndarray) -> Given:
            self.classes_ = np.arange(classes)
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return probs[: len(X)] if len(X) <= pool else probs

        def predict(self, X: np.ndarray) -> np.ndarray:
            return self.predict_proba(X).argmax(1)

    unlabelled = np.full(pool, np.nan)
    unlabelled[:2] = [0, 1]
    model = SklearnClassifier(Given(), classes=list(range(classes)))

    def theirs() -> None:
        Badge(random_state=0).query(
            features,
            unlabelled,
            model,
            batch_size=batch,
        )

    print(f"  scikit-activeml Badge                   {seconds(theirs, 1):8.3f} s")


def flqmi(pool: int = 50_000, classes: int = 10, width: int = 64, batch: int = 1_000) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(classes, 0.3), pool)
    features = np.maximum(rng.standard_normal((pool, width)), 0)
    task = MultiClass(classes)
    labelled = np.arange(10 * classes)
    labels = np.eye(classes)[labelled % classes]
    arms = make_arms(["submodular"], task)
    view = ArrayView(
        task,
        probs,
        features,
        labelled=labelled,
        labels=labels,
    )
    plan = np.zeros(batch, int)
    opening = []
    taking = []
    for _ in range(3):
        view = ArrayView(
            task,
            probs,
            features,
            labelled=labelled,
            labels=labels,
        )
        walk = Round(view, arms, plan, 0)
        walk.batch()
        opening.append(walk.open_seconds)
        taking.append(walk.take_seconds)
    queries = Submodular().query_set(view, np.random.default_rng((0, 0)))
    print(f"FLQMI, {batch} of {pool} with {len(queries)} queries")
    print(
        f"  tailor          open {sorted(opening)[1]:.3f} s (cosines too), take "
        f"{sorted(taking)[1]:.3f} s"
    )
    try:
        from submodlib import FacilityLocationVariantMutualInformationFunction as Function
    except ImportError:
        print("  submodlib is not installed")
        return
    import torch

    free = np.setdiff1d(np.arange(pool), labelled)
    rows, chosen = (unit_parts(parts(view, torch.from_numpy(ids))) for ids in (free, queries))
    similarities = cosines(rows, chosen).numpy().T.copy()
    started = time.perf_counter()
    function = Function(
        n=len(free),
        num_queries=len(queries),
        query_sijs=similarities.T.copy(),
        queryDiversityEta=1.0,
    )
    built = time.perf_counter()
    function.maximize(
        budget=batch,
        optimizer="LazyGreedy",
        stopIfZeroGain=False,
        stopIfNegativeGain=False,
        show_progress=False,
    )
    print(
        f"  submodlib       construct {built - started:.3f} s, maximise "
        f"{time.perf_counter() - built:.3f} s"
    )


if __name__ == "__main__":
    badge()
    flqmi()
