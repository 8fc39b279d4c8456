"""The tables of the Experiments section of README.md, from the rows in results/:

python benchmarks/report_tables.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tailor_experiments.comparison import report_tables
from tailor_experiments.comparison.gather import load
from tailor_experiments.comparison.judging import RANDOM, RANDOM_META, difference, judged_by, rivals
from tailor_experiments.comparison.results import AREA, Results
from tailor_experiments.comparison.roles import single_families_of
from tailor_experiments.comparison.rows import Row
from tailor_experiments.comparison.stats import Difference, mean_error, paired

RESULTS = Path(__file__).parent / "results"
PROBES = (
    "scene",
    "cars-probe",
    "cifar10-2-probe",
    "cifar10-10-probe",
    "caltech101-probe",
    "fashion-2-probe",
    "fashion-10-probe",
)
TRAINED = (*PROBES, "fashion-2-cnn", "fashion-10-cnn")
#: of CelebA there are labels alone, and predictions are simulated
MAIN = (*TRAINED, "celeba")
#: networks trained as a whole -> how many labels the rarest class has in all
RAREST_TOTAL = {
    "cifar10-2-resnet18": 5000,
    "cifar10-2-efficientnet": 5000,
    "cars-finetune": 327,
}
SELECTORS = ("random meta", "TAILOR", "ALBL", "COMB", "DEAL", "linear Thompson")
WIDE = "TAILOR, wide, surprise, family"
DIFFICULTY = "TAILOR, surprise, family, difficulty"
FLAT = "TAILOR, surprise, family, flat"


@cache
def results_of(name: str) -> Results:
    """The one experiment in a folder of results/."""
    (results,) = load(RESULTS / name)
    return results


def title(name: str) -> str:
    # The paper's setting, whose rows are called by the dataset alone.
    return "cifar10-2, ResNet-18" if name == "cifar10-2-resnet18" else results_of(name).name


def line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def interval(pair: Difference, form: str) -> str:
    """A difference with its interval, each number in a form such as "+.3f"."""
    star = " *" if pair.clear else ""
    return f"{pair.mean:{form}} [{pair.low:{form}}, {pair.high:{form}}]{star}"


def counted(pair: Difference | None, form: str) -> str:
    """With the number of pairs; nothing where there are none."""
    return "" if pair is None else f"{interval(pair, form)} ({pair.n})"


def verdicts(focus: str, metric: str | None = None, names: Sequence[str] = MAIN) -> Iterator[str]:
    """Against the best single family, random meta and random."""
    experiments = [results_of(name) for name in names if focus in results_of(name).rows]
    table = report_tables.yardsticks(experiments, focus, metric)
    assert table is not None
    for name, judge, _, *cells in table.rows:
        yield line(name, judge, *cells)


def areas(focus: str) -> Iterator[str]:
    """The same by the area under the curve, where a model is trained."""
    for name in TRAINED:
        results = results_of(name)
        singles = single_families_of(results, focus)
        common_seeds = results.common_seeds(*singles)
        mean_areas = {
            single: results.areas(single, results.main_metric, common_seeds).mean()
            for single in singles
        }
        best_single = max(singles, key=mean_areas.__getitem__)
        others = rivals(results, focus)
        cells = []
        for other in (best_single, others[RANDOM_META], others[RANDOM]):
            pair = None if other is None else difference(results, focus, other, AREA)
            if pair is not None:
                cells.append(f"{interval(pair, '+.4f')} {pair.verdict} ({pair.n})")
        yield line(results.name, best_single, *cells)


def choices() -> Iterator[str]:
    """What each choice is worth: minus TAILOR as in the paper."""
    experiments = [results_of(name) for name in PROBES]
    contenders = [contender for results in experiments for contender in results.contenders]
    variants = dict.fromkeys(
        contender for contender in contenders if contender.startswith(("TAILOR, ", "random meta"))
    )
    for variant in variants:
        cells = []
        for results in experiments:
            pair = None
            if variant in results.rows:
                pair = difference(results, variant, "TAILOR", judged_by(results))
            cells.append(counted(pair, "+.3f"))
        yield line(variant, *cells)


def targets() -> Iterator[str]:
    """Labels until a contender first reaches what random reaches in the end, the median over
    trials.
    """
    for name in (*TRAINED, *RAREST_TOTAL):
        results = results_of(name)
        main = results.main_metric
        total = results.total_labels
        target = results.final_values("random", main).mean()
        medians = {
            contender: float(np.median(results.labels_to(contender, main, target)))
            for contender in results.contenders
        }
        cells = []
        for contender in ("random", "random meta", "TAILOR", WIDE):
            labels = medians.get(contender)
            if labels is None:
                cells.append("")
            else:
                cells.append(f"{labels:,.0f}" if np.isfinite(labels) else f"> {total:,}")
        singles = single_families_of(results, "TAILOR")
        fewest = min(medians[single] for single in singles)
        best = [single for single in singles if medians[single] == fewest]
        families = ", ".join(sorted(single.removesuffix(" alone") for single in best))
        metric = results.metric_label(main).removesuffix(" (test)")
        yield line(
            title(name),
            f"{target:.3f} {metric} after {total:,}",
            *cells,
            f"{fewest:,.0f} ({families})",
        )


def shares() -> Iterator[str]:
    """The share of pulls of the most frequent arm, mean over the second half of the rounds."""
    for name in (*MAIN, *RAREST_TOTAL):
        late_rows = {
            selector: [
                row
                for trial in results_of(name).rows[selector].values()
                for row in trial
                if row["round"] > row["rounds"] // 2
            ]
            for selector in SELECTORS
        }
        arms = {arm for row in late_rows["random meta"] for arm in row["pulls"]}
        cells = []
        for selector in SELECTORS:
            share = np.mean([top_share(row) for row in late_rows[selector]])
            cells.append(f"**{share:.0%}**" if selector == "TAILOR" else f"{share:.0%}")
        yield line(title(name), str(len(arms)), *cells)


def top_share(row: Row) -> float:
    """Of a round's pulls those of its most frequent arm."""
    share: float = row["top_pulls"] / sum(row["pulls"].values())
    return share


def bonuses() -> Iterator[str]:
    """ALBL and DEAL in both forms: how far an arm's chance gets from uniform in any round, and
    differences in score.
    """
    results = results_of("scene-bonus")
    judge = judged_by(results)
    for contender in results.contenders:
        trials = results.rows[contender].values()
        off_uniform = max(row["off_uniform"] for trial in trials for row in trial)
        score = mean_error(results.final_values(contender, results.main_metric))
        without_bonus = contender.partition(", bonus")[0]
        cells = []
        for other, metric in (
            ("random meta", judge),
            ("random meta", "imbalance"),
            (without_bonus, judge),
        ):
            pair = None if other == contender else difference(results, contender, other, metric)
            cells.append(counted(pair, "+.4f"))
        yield line(
            contender,
            f"{off_uniform:.4f}",
            f"{score.mean:.4f} ± {score.error:.4f}",
            *cells,
        )


def positives() -> Iterator[str]:
    """Total positives with the search reward, most on cars first."""
    scene, cars, celeba = (results_of(f"{name}-search") for name in ("scene", "cars", "celeba"))
    most_first = sorted(
        cars.contenders,
        key=lambda contender: -cars.final_values(contender, "positives").mean(),
    )
    for contender in most_first:
        cells = []
        for results in (scene, cars, celeba):
            if contender in results.rows:
                mean = mean_error(results.final_values(contender, "positives"))
                cells.append(f"{mean.mean:,.1f} ± {mean.error:,.1f}")
            else:
                cells.append("")
        yield line(contender, *cells)


def whole_networks(name: str) -> Iterator[str]:
    """Means over the rounds, TAILOR minus each contender, and labels until 90% of the rarest class
    are found.
    """
    results = results_of(name)
    forms = {
        results.main_metric: ".3f",
        "rarest": ",.0f",
        "imbalance": ".3f",
    }
    for contender in results.contenders:
        cells = []
        for metric, form in forms.items():
            tailors = results.areas("TAILOR", metric)
            areas = results.areas(contender, metric)
            cell = f"{areas.mean():{form}}"
            if metric == results.main_metric:
                cell += f" ± {mean_error(areas).error:.3f}"
            if contender != "TAILOR":
                cell += f" ({interval(paired(tailors, areas), f'+{form}')})"
            cells.append(cell)
        wanted = 0.9 * RAREST_TOTAL[name]
        labels = results.labels(contender)
        needed = [
            np.interp(wanted, curve, labels) if curve[-1] >= wanted else np.inf
            for curve in results.values(contender, "rarest")
        ]
        cells.append(f"{round(np.mean(needed), -2):,.0f}" if np.isfinite(needed).all() else "never")
        yield line(contender, *cells)


def published() -> Iterator[tuple[str, Iterator[str]]]:
    """Every table's name and lines."""
    yield "TAILOR", verdicts("TAILOR")
    yield "TAILOR, area", areas("TAILOR")
    yield "TAILOR, balance", verdicts("TAILOR", "imbalance")
    yield "labels to a target", targets()
    yield "who chooses", shares()
    yield "bonuses", bonuses()
    yield WIDE, verdicts(WIDE)
    yield DIFFICULTY, verdicts(DIFFICULTY)
    yield FLAT, verdicts(FLAT, names=PROBES)
    yield "search", positives()
    yield "choices", choices()
    for name in RAREST_TOTAL:
        yield name, whole_networks(name)


if __name__ == "__main__":
    for name, lines in published():
        print(name, *lines, "", sep="\n")
