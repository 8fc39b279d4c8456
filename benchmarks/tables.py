"""The tables of the Experiments section of README.md, from the rows in results/: python
benchmarks/tables.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tailor_experiments.comparison import tables
from tailor_experiments.comparison.gather import load
from tailor_experiments.comparison.results import Results
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
MAIN = (*PROBES, "fashion-2-cnn", "fashion-10-cnn", "celeba")
#: how many labels the rarest class has in all
WHOLE = {"cifar10-2-resnet18": 5000, "cifar10-2-efficientnet": 5000, "cars-finetune": 327}
RIVALS = ("random meta", "TAILOR", "ALBL", "COMB", "DEAL", "linear Thompson")
WIDE, DIFFICULTY, FLAT = (
    f"TAILOR, {kind}"
    for kind in ("wide, surprise, family", "surprise, family, difficulty", "surprise, family, flat")
)


@cache
def results(name: str) -> Results:
    (found,) = load(RESULTS / name)
    return found


def title(name: str) -> str:
    return (
        "cifar10-2, ResNet-18" if name == "cifar10-2-resnet18" else results(name).name
    )  # the paper's setting


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def spread(found: Difference, form: str) -> str:
    low = format(found.low, form)
    high = format(found.high, form)
    return f"{format(found.mean, form)} [{low}, {high}]{' *' if found.clear else ''}"


def verdicts(focus: str, metric: str | None = None, names: Sequence[str] = MAIN) -> Iterator[str]:
    """Against the best single family, random meta and random."""
    table = tables.yardsticks(
        [results(n) for n in names if focus in results(n).rows], focus, metric
    )
    assert table is not None
    yield from (line(*row[:2], *row[3:]) for row in table.rows)


def areas(focus: str) -> Iterator[str]:
    """The same by the area under the curve, where a model is trained."""
    for one in (results(n) for n in MAIN[:-1]):
        singles = one.own_singles(focus)
        common = one.seeds(*singles)
        best = max(singles, key=lambda c: one.areas(c, one.main, common).mean())
        pairs = [
            one.difference(focus, other, "area")
            for other in (best, *tables.rivals(one, focus)[1:])
            if other
        ]
        yield line(
            one.name, best, *(f"{spread(d, '+.4f')} {d.verdict} ({d.n})" for d in pairs if d)
        )


def choices() -> Iterator[str]:
    """What each choice is worth: minus TAILOR as in the paper."""
    kept = [results(n) for n in PROBES]
    variants = dict.fromkeys(
        c for one in kept for c in one.contenders if c.startswith(("TAILOR, ", "random meta"))
    )
    for variant in variants:
        found = [
            one.difference(variant, "TAILOR", one.aim) if variant in one.rows else None
            for one in kept
        ]
        yield line(variant, *(f"{spread(d, '+.3f')} ({d.n})" if d else "" for d in found))


def targets() -> Iterator[str]:
    """Labels until a contender first reaches what random reaches in the end, the median over
    trials.
    """
    for name in (*MAIN[:-1], *WHOLE):
        one = results(name)
        target = one.last("random", one.main).mean()
        few = {c: float(np.median(one.labels_to(c, one.main, target))) for c in one.contenders}
        shown = {c: f"{n:,.0f}" if np.isfinite(n) else f"> {one.total:,}" for c, n in few.items()}
        singles = one.own_singles("TAILOR")
        best = min(few[c] for c in singles)
        names = ", ".join(sorted(c.removesuffix(" alone") for c in singles if few[c] == best))
        kind = one.label(one.main).removesuffix(" (test)")
        counts = (shown.get(c, "") for c in ("random", "random meta", "TAILOR", WIDE))
        yield line(
            title(name),
            f"{target:.3f} {kind} after {one.total:,}",
            *counts,
            f"{best:,.0f} ({names})",
        )


def shares() -> Iterator[str]:
    """The share of pulls of the most frequent arm, mean over the second half of the rounds."""
    for name in (*MAIN, *WHOLE):
        one = results(name)
        late = {
            c: [r for rows in one.rows[c].values() for r in rows if r["round"] > r["rounds"] // 2]
            for c in RIVALS
        }
        arms = {arm for row in late["random meta"] for arm in row["pulls"]}
        found = (
            f"{np.mean([r['top_pulls'] / sum(r['pulls'].values()) for r in late[c]]):.0%}"
            for c in RIVALS
        )
        yield line(
            title(name),
            str(len(arms)),
            *(f"**{s}**" if c == "TAILOR" else s for c, s in zip(RIVALS, found)),
        )


def bonuses() -> Iterator[str]:
    """ALBL and DEAL in both forms: how far an arm's chance gets from uniform in any round, and
    differences in score.
    """
    one = results("scene-bonus")
    for contender in one.contenders:
        off = max(row["off_uniform"] for rows in one.rows[contender].values() for row in rows)
        score = mean_error(one.last(contender, one.main))
        plain = contender.partition(", bonus")[0]
        pairs = [("random meta", one.aim), ("random meta", "imbalance"), (plain, one.aim)]
        found = [
            one.difference(contender, *pair) if pair[0] != contender else None for pair in pairs
        ]
        shown = (f"{spread(d, '+.4f')} ({d.n})" if d else "" for d in found)
        yield line(contender, f"{off:.4f}", f"{score.mean:.4f} ± {score.error:.4f}", *shown)


def positives() -> Iterator[str]:
    """Total positives with the search reward, most on cars first."""
    kept = [results(f"{name}-search") for name in ("scene", "cars", "celeba")]
    order = sorted(kept[1].rows, key=lambda c: -kept[1].last(c, "positives").mean())
    for contender in order:
        means = (
            mean_error(r.last(contender, "positives")) if contender in r.rows else None
            for r in kept
        )
        yield line(contender, *(f"{m.mean:,.1f} ± {m.error:,.1f}" if m else "" for m in means))


def whole(name: str) -> Iterator[str]:
    """Means over the rounds, TAILOR minus each contender, and labels until 90% of the rarest class
    are found.
    """
    one = results(name)
    forms = {one.main: ".3f", "rarest": ",.0f", "imbalance": ".3f"}
    for contender in one.contenders:
        cells = []
        for metric, form in forms.items():
            ours, theirs = (one.areas(c, metric) for c in ("TAILOR", contender))
            cell = format(theirs.mean(), form)
            cell += f" ± {mean_error(theirs).error:.3f}" if metric == one.main else ""
            other = contender != "TAILOR"
            cells.append(f"{cell} ({spread(paired(ours, theirs), '+' + form)})" if other else cell)
        labels = one.labels(contender)
        found = [
            np.interp(0.9 * WHOLE[name], row, labels) if row[-1] >= 0.9 * WHOLE[name] else np.inf
            for row in one.values(contender, "rarest")
        ]
        cells.append(f"{round(np.mean(found), -2):,.0f}" if np.isfinite(found).all() else "never")
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
    for name in WHOLE:
        yield name, whole(name)


if __name__ == "__main__":
    for name, lines in published():
        print(name, *lines, "", sep="\n")
