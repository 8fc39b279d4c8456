"""What each family of arms picks on a two-dimensional toy pool, drawn for the reference pages.

    python docs/toy_pool_figures.py FOLDER [FAMILY...]    # one SVG a family; all by default

Everything is made from fixed seeds: the same figure comes out each time.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from tailor import Learner, MultiClass, MultiLabel
from tailor.common.linear_head import LinearHead
from tailor.strategies import registry
from tailor.task import Task

PICKS = 12
STRENGTH = 20  # C of the model's logistic regression
COLOURS = ("#4878a8", "#e07b39", "#3d9a58")  # blue, orange, green: told apart by the colour-blind
#: families that reason with the model's last layer: their features are what that layer sees
ON_THE_HEAD = {"base", "deepfool", "bait", "lookahead", "committee"}
EDGE = 1.08  # the plane is drawn from -EDGE to EDGE


@dataclass(frozen=True)
class ToyPool:
    """Points in the plane with known labels, some of them labelled already."""

    task: Task
    points: np.ndarray  # (N, 2) float64
    labels: np.ndarray  # (N, K) of 0 and 1
    labelled: np.ndarray  # (n,) positions


class ToyModel:
    """Logistic regression on Gaussian bumps, so that its borders can bend.

    pool  the pool whose classes it predicts
    """

    def __init__(self, pool: ToyPool) -> None:
        self.pool = pool
        steps = np.linspace(-1, 1, 5)
        self.centres = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
        self.weights: np.ndarray = np.zeros((0, 0))
        self.offsets: np.ndarray = np.zeros(0)

    def bumps(self, points: np.ndarray) -> np.ndarray:
        """points (n, 2) -> (n, 25)"""
        squared = ((points[:, None] - self.centres[None]) ** 2).sum(-1)
        return np.exp(-squared / 0.3)

    def fit(self, points: np.ndarray, targets: np.ndarray) -> ToyModel:
        """targets (n, K) in [0, 1]: each example counts for every class by its target."""
        inputs = self.bumps(points)
        if isinstance(self.pool.task, MultiClass):
            fitted = [_logistic(inputs, targets)]
        else:
            fitted = [_logistic(inputs, np.stack([1 - column, column], 1)) for column in targets.T]
        self.weights = np.concatenate([model.coef_ for model in fitted])
        self.offsets = np.concatenate([model.intercept_ for model in fitted])
        return self

    def predict(self, points: np.ndarray, mask: np.ndarray | float = 1.0) -> np.ndarray:
        """points (n, 2) -> probabilities (n, K). mask (25,) scales the bumps, for dropout."""
        logits = (self.bumps(points) * mask) @ self.weights.T + self.offsets
        if isinstance(self.pool.task, MultiClass):
            powers = np.exp(logits - logits.max(1, keepdims=True))
            return powers / powers.sum(1, keepdims=True)
        return 1 / (1 + np.exp(-logits))

    def dropout_passes(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        masks = (rng.random((10, len(self.centres))) < 0.7) / 0.7
        return [self.predict(self.pool.points, mask) for mask in masks]

    def tuned_on_pool(self, targets: Any, epochs: int) -> np.ndarray:
        """The probabilities of a copy that was fitted to soft targets for the whole pool."""
        copy = ToyModel(self.pool).fit(self.pool.points, np.asarray(targets, np.float64))
        return copy.predict(self.pool.points)


def _logistic(inputs: np.ndarray, targets: np.ndarray) -> LogisticRegression:
    """targets (n, K): every example is given once for each class, weighted by its target."""
    count, classes = targets.shape
    repeated = np.repeat(inputs, classes, axis=0)
    outcome = np.tile(np.arange(classes), count)
    kept = targets.ravel() > 0
    model = LogisticRegression(C=STRENGTH, max_iter=500)
    return model.fit(repeated[kept], outcome[kept], sample_weight=targets.ravel()[kept])


def imbalanced_pool() -> ToyPool:
    """Three classes: one fills the plane, two are rare."""
    rng = np.random.default_rng(4)
    common = rng.uniform(-1, 1, (230, 2))
    rare = rng.normal((0.45, 0.45), 0.17, (45, 2))
    rarest = rng.normal((-0.5, -0.35), 0.12, (25, 2))
    points = np.clip(np.concatenate([common, rare, rarest]), -1, 1)
    classes = np.repeat([0, 1, 2], [230, 45, 25])
    labelled = np.concatenate([rng.choice(230, 12, replace=False), [231, 240, 250, 276, 290]])
    return ToyPool(MultiClass(["common", "rare", "rarest"]), points, np.eye(3)[classes], labelled)


def overlapping_pool() -> ToyPool:
    """Two classes that an example may have both of, or neither."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (300, 2))
    centres = np.array([[-0.28, 0.12], [0.35, -0.12]])
    radii = np.array([0.6, 0.5])
    distances = np.linalg.norm(points[:, None] - centres[None], axis=2)
    labels = (distances < radii).astype(float)
    return ToyPool(MultiLabel(["A", "B"]), points, labels, rng.choice(300, 22, replace=False))


def pick(family: str) -> tuple[ToyPool, ToyModel, np.ndarray, list[str]]:
    """The toy pool, its model, and what `family` takes next: positions and arm names in order."""
    multi_class = "multi-class" in registry.find(family).tasks
    pool = imbalanced_pool() if multi_class else overlapping_pool()
    model = ToyModel(pool).fit(pool.points[pool.labelled], pool.labels[pool.labelled])
    learner = Learner(
        pool.task,
        len(pool.points),
        strategies=[family],
        selector="random-meta",
        batch=PICKS,
    )
    learner.tell(pool.labelled, pool.labels[pool.labelled])
    features = pool.points
    head = None
    if family in ON_THE_HEAD:
        features = model.bumps(pool.points)
        head = LinearHead(model.weights, model.offsets, ridge=1 / STRENGTH)
    batch = learner.ask(
        model.predict(pool.points),
        features,
        finetune=model.tuned_on_pool,
        dropout=model.dropout_passes,
        head=head,
    )
    return pool, model, batch.indices, list(batch.arm_names)


def draw(family: str) -> bytes:
    """The figure of a family, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    pool, model, picks, arm_names = pick(family)
    style = {"svg.hashsalt": "tailor", "font.family": "DejaVu Sans", "font.size": 9}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(6.0, 4.4), layout="constrained")
        _draw_predictions(axes, pool, model)
        _draw_points(axes, pool, picks)
        _draw_picks(axes, pool, picks, arm_names)
        axes.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), xticks=[], yticks=[], aspect="equal")
        for spine in axes.spines.values():
            spine.set_color("#c8c8c8")
        axes.set_title(f"{family}: the next {len(picks)} picks, in order", fontsize=10.5)
        _draw_legend(axes, pool)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return out.getvalue()


def _draw_predictions(axes: Any, pool: ToyPool, model: ToyModel) -> None:
    steps = np.linspace(-EDGE, EDGE, 121)
    across, up = np.meshgrid(steps, steps)
    probs = model.predict(np.stack([across.ravel(), up.ravel()], 1))
    planes = probs.T.reshape(-1, *across.shape)
    if isinstance(pool.task, MultiClass):
        # How far a class is ahead of the best other one: it is predicted where that is above 0.
        rivals = [np.delete(planes, k, axis=0).max(0) for k in range(len(planes))]
        leads = planes - np.stack(rivals)
        colours: tuple[str, ...] = COLOURS
    else:
        leads = planes - 0.5
        colours = COLOURS[1:]
    for lead, colour in zip(leads, colours, strict=False):
        axes.contourf(across, up, lead, levels=[0, 1], colors=[colour], alpha=0.13, zorder=0)
        axes.contour(across, up, lead, levels=[0], colors=[colour], linewidths=0.9, zorder=1)


def _point_colours(pool: ToyPool) -> list[str]:
    if isinstance(pool.task, MultiClass):
        return [COLOURS[k] for k in pool.labels.argmax(1)]
    mixtures = {(0, 0): COLOURS[0], (1, 0): COLOURS[1], (0, 1): COLOURS[2], (1, 1): "#8a6d3b"}
    return [mixtures[int(a), int(b)] for a, b in pool.labels]


def _draw_points(axes: Any, pool: ToyPool, picks: np.ndarray) -> None:
    colours = np.array(_point_colours(pool))
    free = np.ones(len(pool.points), bool)
    free[pool.labelled] = False
    axes.scatter(*pool.points[free].T, s=11, c=colours[free], alpha=0.55, linewidths=0, zorder=2)
    axes.scatter(
        *pool.points[pool.labelled].T,
        s=46,
        c=colours[pool.labelled],
        edgecolors="black",
        linewidths=1.3,
        marker="s",
        zorder=3,
    )


def _draw_picks(axes: Any, pool: ToyPool, picks: np.ndarray, arm_names: list[str]) -> None:
    for order, (position, arm) in enumerate(zip(picks, arm_names, strict=True), start=1):
        x, y = pool.points[position]
        colour = _arm_colour(pool, arm)
        axes.scatter(x, y, s=170, c="white", edgecolors=colour, linewidths=1.8, zorder=4)
        axes.text(
            x,
            y - 0.006,
            str(order),
            ha="center",
            va="center",
            fontsize=7.5,
            color=colour,
            weight="bold",
            zorder=5,
        )


def _arm_colour(pool: ToyPool, arm: str) -> str:
    """Black, or the colour of the class that the arm works for."""
    palette = COLOURS if isinstance(pool.task, MultiClass) else COLOURS[1:]
    for name, colour in zip(pool.task.classes, palette, strict=False):
        if arm.endswith(f"[{name}]"):
            return colour
    return "#222222"


def _draw_legend(axes: Any, pool: ToyPool) -> None:
    from matplotlib.lines import Line2D

    def dot(colour: str, label: str) -> Line2D:
        return Line2D([], [], marker="o", ls="", ms=5, color=colour, alpha=0.7, label=label)

    if isinstance(pool.task, MultiClass):
        entries = [dot(c, name) for c, name in zip(COLOURS, pool.task.classes, strict=True)]
    else:
        kinds = ("neither", "A", "B", "A and B")
        entries = [dot(c, kind) for c, kind in zip((*COLOURS, "#8a6d3b"), kinds, strict=True)]
    square = {"marker": "s", "ls": "", "ms": 6, "mec": "black", "mew": 1.2}
    ring = {"marker": "o", "ls": "", "ms": 10, "mew": 1.6, "mfc": "white", "mec": "#222222"}
    entries.append(Line2D([], [], mfc="#dddddd", label="labelled", **square))
    entries.append(Line2D([], [], label="picked", **ring))
    axes.legend(
        handles=entries,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        labelspacing=0.9,
    )


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for family in arguments[1:] or registry.builtin:
        (folder / f"{family}.svg").write_bytes(draw(family))
        print(folder / f"{family}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
