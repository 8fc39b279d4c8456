"""How contenders of an experiment compare: by which metric, over which seeds, with whom."""

from __future__ import annotations

from collections.abc import Sequence

from tailor_experiments.comparison import roles, stats
from tailor_experiments.comparison.results import AREA, Results
from tailor_experiments.comparison.stats import Difference

BEST_SINGLE = "best single family"
RANDOM_META = "random meta"
RANDOM = "random"
#: whom every contender is measured by
RIVALS = (BEST_SINGLE, RANDOM_META, RANDOM)


def judged_by(results: Results) -> str:
    """The metric that contenders are judged by.

    That is the main score; total positives where TAILOR searches; and labels in the rarest class
    where every contender has the same scores, since predictions are simulated.
    """
    judged = roles.tailors(results) or results.contenders
    rewards = [results.sample(contender)["reward"] for contender in judged]
    if "positives" in results.metrics and all(reward.startswith("search") for reward in rewards):
        return "positives"
    if "rarest" in results.metrics and _all_score_the_same(results):
        return "rarest"
    return results.main_metric


def _all_score_the_same(results: Results) -> bool:
    """Whether of each seed all contenders end with one score."""
    if len(results.rows) < 2:
        return False
    final_scores: dict[int, set[float]] = {}
    for trials in results.rows.values():
        for seed, trial in trials.items():
            final_scores.setdefault(seed, set()).add(trial[-1][results.main_metric])
    return all(len(scores) == 1 for scores in final_scores.values())


def compared_metrics(results: Results) -> list[str]:
    """What differences are given of; what contenders are judged by comes first."""
    shown = [
        results.main_metric,
        AREA,
        "rarest",
        "imbalance",
        "positives",
    ]
    measured = [metric for metric in shown if metric == AREA or metric in results.metrics]
    return list(dict.fromkeys([judged_by(results), *measured]))


def difference(results: Results, ours: str, other: str, metric: str) -> Difference | None:
    """One contender minus another, paired by seed; None where they have no seed in common.

    metric  after the last round, or AREA under the curve of the main metric
    """
    seeds = results.common_seeds(ours, other)
    if not seeds:
        return None
    if metric == AREA:
        main = results.main_metric
        return stats.paired(results.areas(ours, main, seeds), results.areas(other, main, seeds))
    return stats.paired(
        results.final_values(ours, metric, seeds),
        results.final_values(other, metric, seeds),
    )


def fair_means(
    results: Results,
    contenders: Sequence[str],
    metric: str | None = None,
) -> dict[str, float]:
    """The mean of each contender after the last round, over the seeds that all of them have: seeds
    differ more than contenders. Where they have none in common, over each one's own.

    metric  by default what contenders are judged by
    """
    if not contenders:
        return {}
    metric = metric or judged_by(results)
    seeds = results.common_seeds(*contenders) or None
    return {
        contender: float(results.final_values(contender, metric, seeds).mean())
        for contender in contenders
    }


def rivals(results: Results, ours: str, metric: str | None = None) -> dict[str, str | None]:
    """Whom a contender is measured by: a contender, or None, for each of RIVALS.

    The best single family is the one of its candidates with the highest mean of the metric; random
    meta chooses among the same candidates, if such a one took part.
    """
    means = fair_means(results, roles.single_families_of(results, ours), metric)
    best_single = max(means, key=means.__getitem__, default=None)
    candidates = results.sample(ours)["families"]
    metas = [contender for contender in roles.random_metas(results) if contender != ours]
    # Stable: of those with other candidates the first stays first.
    metas.sort(key=lambda contender: results.sample(contender)["families"] != candidates)
    plain = [
        contender
        for contender in results.contenders
        if results.sample(contender)["families"] == ["random"] and contender != ours
    ]
    return {
        BEST_SINGLE: best_single,
        RANDOM_META: metas[0] if metas else None,
        RANDOM: plain[0] if plain else None,
    }
