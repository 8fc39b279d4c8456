"""Which figures an experiment's rows allow, and drawing them, several at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

import numpy as np

from tailor.models.base import ProgressCallback, quiet
from tailor_experiments.comparison import judging, parallel, roles
from tailor_experiments.comparison.curves import arm_curves, metric_curves
from tailor_experiments.comparison.report_tables import trial_counts
from tailor_experiments.comparison.results import Results
from tailor_experiments.figures import Curves, Interval, intervals, panels

#: curves that can be told apart in one panel
CURVES_A_PANEL = 9
#: figures that are drawn sooner than another process has started
FIGURES_A_WORKER = 6
PAIRED = "paired by seed, 95% intervals"
NAN = float("nan")


@dataclass(frozen=True)
class FigureTask:
    """A figure, yet to be drawn: as PNG at `path`, with a PDF beside it."""

    title: str
    path: Path
    draw: Callable[[Path, Path], None]


def draw_all(
    pictures: Sequence[FigureTask], workers: int = 1, progress: ProgressCallback = quiet
) -> None:
    """In `workers` processes; with one, or where it isn't worth it, in this one."""
    # Starting a process takes as long as drawing some figures.
    workers = min(workers, len(pictures) // FIGURES_A_WORKER)
    if workers < 2:
        titles: Iterator[str] = map(_draw, pictures)
    else:
        jobs = [(picture,) for picture in pictures]
        titles = parallel.run_all(_draw, jobs, workers)
    for done, _ in enumerate(titles, 1):
        progress(done, len(pictures), "figures")


def _draw(picture: FigureTask) -> str:
    picture.draw(picture.path, picture.path.with_suffix(".pdf"))
    parallel.report(picture.title)
    return picture.title


def pictures(
    results: Results,
    out: Path,
    window: int = 3,
    focus: str | None = None,
) -> list[FigureTask]:
    """Every figure that the rows of an experiment allow.

    out     the folder that they are drawn into
    window  rounds over which curves are smoothed
    focus   the contender that the others are compared with
    """
    gallery = _Gallery(
        results,
        out,
        window,
        roles.focused(results, focus),
    )
    return [
        *gallery.of_metrics(),
        *gallery.of_arms(),
        *gallery.of_ablations(),
        *gallery.of_differences(),
    ]


@dataclass(frozen=True)
class _Gallery:
    """The figures of one experiment, by kind. ours: the contender in focus."""

    results: Results
    out: Path
    window: int
    ours: str

    def of_metrics(self) -> list[FigureTask]:
        """Each metric over the labels, and beside it the same minus random."""
        results = self.results
        figures = []
        for metric in results.metrics:
            label = results.metric_label(metric)
            curves = [(label, metric_curves(results, metric, self.window))]
            # Most of what a curve does, random's does too: the difference shows what is left.
            if "random" in results.rows and len(results.rows) > 1:
                minus_random = metric_curves(
                    results,
                    metric,
                    self.window,
                    minus="random",
                )
                curves.append((f"{label},\nminus random's", minus_random))
            figures.append(
                self._panels(
                    metric,
                    label,
                    curves,
                    results.contenders,
                    lineup(results, self.ours),
                )
            )
        return figures

    def of_arms(self) -> list[FigureTask]:
        """How often arms are pulled: TAILOR's arms, and every selector's most frequent one."""
        results = self.results
        learners = roles.learners(results)
        if not learners:
            return []
        # Rivals' arms are of interest only where no TAILOR is there.
        tailors = roles.tailors(results) or learners
        figures = []
        for contender in learners:
            if contender not in tailors:
                continue
            pulls = arm_curves(results, contender, window=self.window)
            figures.append(
                self._panels(
                    f"arms-{contender}",
                    f"{contender}'s ten most pulled arms",
                    [("pulls a round", pulls)],
                    [contender],
                )
            )
        most_pulled = metric_curves(
            results,
            "top_pulls",
            self.window,
            learners,
        )
        figures.append(
            self._panels(
                "top-arm",
                "pulls of the most frequent arm",
                [("pulls a round", most_pulled)],
                learners,
                lineup(results, self.ours),
            )
        )
        return figures

    def of_ablations(self) -> list[FigureTask]:
        """TAILOR with other candidates."""
        results = self.results
        wanted = (results.main_metric, "rarest", "imbalance")
        metrics = [metric for metric in wanted if metric in results.metrics]
        figures = []
        for number, members in enumerate(roles.candidate_ablations(results)):
            curves = []
            for metric in metrics:
                label = results.metric_label(metric)
                lines = metric_curves(
                    results,
                    metric,
                    self.window,
                    members,
                )
                curves.append((label, lines))
            figures.append(
                self._panels(
                    "candidates" if number == 0 else f"candidates-{members[0]}",
                    f"{members[0]} with other candidates",
                    curves,
                    members,
                    [members],
                )
            )
        return figures

    def of_differences(self) -> list[FigureTask]:
        """The contender in focus minus each other, where there are intervals."""
        results = self.results
        bars = []
        for metric in judging.compared_metrics(results):
            rows = self._intervals(metric)
            if rows:
                bars.append((results.metric_label(metric), rows))
        if not bars:
            return []
        title = f"{results.name}: {self.ours} minus each other contender"
        draw = partial(intervals, bars, f"{title}\n{PAIRED}")
        return [FigureTask(title, self._path("differences"), draw)]

    def _intervals(self, metric: str) -> list[Interval]:
        rows = []
        for other, pair in _differences(self.results, self.ours, metric):
            # One pair has a difference, and no interval to draw.
            if pair.n > 1:
                label = f"{other} ({pair.n})"
                rows.append((label, pair.mean, pair.low, pair.high))
        return rows

    def _panels(
        self,
        kind: str,
        what: str,
        curves: Sequence[tuple[str, Curves]],
        contenders: Sequence[str],
        rows: Sequence[Sequence[str]] = (),
    ) -> FigureTask:
        """A figure of panels. kind: in the file's name; contenders: whose trials it shows."""
        title = f"{self.results.name}: {what}"
        trials = trial_counts(self.results, contenders)
        caption = f"{title}\n{trials} trials, bands: standard error, {self._smoothing()}"
        # Pulls are counted round by round, and have no rows of contenders.
        xlabel = "labels" if rows else "round"
        draw = partial(
            panels,
            curves,
            xlabel,
            caption,
            lineup=rows,
        )
        return FigureTask(title, self._path(kind), draw)

    def _smoothing(self) -> str:
        if self.window < 2:
            return "not smoothed"
        return f"smoothed over {self.window} rounds"

    def _path(self, kind: str) -> Path:
        name = f"{self.results.name}-{kind}".lower()
        # Names of experiments may hold anything, a path may not.
        stem = re.sub(r"[^a-z0-9.]+", "-", name).strip("-.")
        return self.out / f"{stem}.png"


def _differences(results: Results, ours: str, metric: str) -> list[tuple[str, judging.Difference]]:
    """Of one contender to each other that shares a seed with it."""
    pairs = []
    for other in results.contenders:
        if other == ours:
            continue
        pair = judging.difference(
            results,
            ours,
            other,
            metric,
        )
        if pair is not None:
            pairs.append((other, pair))
    return pairs


def overall_pictures(
    experiments: Sequence[Results], out: Path, focus: str | None = None
) -> list[FigureTask]:
    """How the contender in focus fares against its rivals on every experiment that is judged by a
    score.
    """
    by_score = [results for results in experiments if _is_judged_by_score(results)]
    # One experiment has this in its own figure of differences.
    if len(by_score) < 2:
        return []
    shown = focus or "TAILOR"
    bars = []
    for rival in judging.RIVALS:
        rows = [
            _rival_interval(
                results,
                rival,
                focus,
                shown,
            )
            for results in by_score
        ]
        bars.append((f"minus {rival}", rows))
    title = f"{shown}: score in the end, minus its rivals'"
    draw = partial(intervals, bars, f"{title}\n{PAIRED}")
    return [FigureTask(title, out / "overall.png", draw)]


def _is_judged_by_score(results: Results) -> bool:
    return judging.judged_by(results).endswith("score")


def _rival_interval(
    results: Results,
    rival: str,
    focus: str | None,
    shown: str,
) -> Interval:
    """The contender in focus minus one of judging.RIVALS; NaN where it did not take part."""
    ours = roles.focused(results, focus)
    name = results.name
    if ours != shown:
        name = f"{results.name} ({ours})"
    other = judging.rivals(results, ours)[rival]
    if other is None:
        return name, NAN, NAN, NAN
    pair = judging.difference(
        results,
        ours,
        other,
        judging.judged_by(results),
    )
    if pair is None:
        return name, NAN, NAN, NAN
    return name, pair.mean, pair.low, pair.high


def lineup(results: Results, ours: str) -> list[list[str]]:
    """Contenders in rows of at most CURVES_A_PANEL; the one in focus and random are in every row.

    Where one row won't do, families alone, other selectors, and TAILORs have rows of their own.
    """
    in_every_row = [ours]
    if "random" in results.rows and ours != "random":
        in_every_row.append("random")
    others = [contender for contender in results.contenders if contender not in in_every_row]
    room = CURVES_A_PANEL - len(in_every_row)
    if len(others) <= room:
        return [[*in_every_row, *others]]
    rows = []
    for members in _by_role(results, others):
        for part in _even_parts(members, room):
            rows.append([*in_every_row, *part])
    return rows


def _by_role(results: Results, contenders: Sequence[str]) -> list[list[str]]:
    """Families alone, other selectors, and TAILORs; a list for each that there are any of."""
    singles = roles.single_families(results)
    tailors = roles.tailors(results)
    of_singles = []
    of_selectors = []
    of_tailors = []
    for contender in contenders:
        if contender in singles:
            of_singles.append(contender)
        elif contender in tailors:
            of_tailors.append(contender)
        else:
            of_selectors.append(contender)
    groups = (of_singles, of_selectors, of_tailors)
    return [members for members in groups if members]


def _even_parts(members: Sequence[str], most: int) -> list[list[str]]:
    """Parts of at most so many, as even as can be: no full ones and a last one with what is
    left.
    """
    count = ceil(len(members) / most)
    return [part.tolist() for part in np.array_split(members, count)]


def with_paths_apart(groups: Sequence[Sequence[FigureTask]]) -> list[list[FigureTask]]:
    """The same, none at the path of another: names may differ in nothing that a path keeps."""
    taken: set[Path] = set()

    def moved(picture: FigureTask) -> FigureTask:
        path = picture.path
        number = 1
        while path in taken:
            number += 1
            path = picture.path.with_stem(f"{picture.path.stem}-{number}")
        taken.add(path)
        return replace(picture, path=path)

    return [[moved(picture) for picture in group] for group in groups]
