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
    all_search = all(reward.startswith("search") for reward in rewards)
    if "positives" in results.metrics and all_search:
        return "positives"
    if "rarest" in results.metrics and _all_score_the_same(results):
        return "rarest"
    return results.main_metric


def _all_score_the_same(results: Results) -> bool:
    """Whether of each seed all contenders end with one score."""
    if len(results.rows) < 2:
        return False
    score_of_seed: dict[int, float] = {}
    for trials in results.rows.values():
        for seed, trial in trials.items():
            score = trial[-1][results.main_metric]
            first_score = score_of_seed.setdefault(seed, score)
            if score != first_score:
                return False
    return True


def compared_metrics(results: Results) -> list[str]:
    """What differences are given of; what contenders are judged by comes first."""
    shown = [
        results.main_metric,
        AREA,
        "rarest",
        "imbalance",
        "positives",
    ]
    metrics = [judged_by(results)]
    for metric in shown:
        is_measured = metric == AREA or metric in results.metrics
        if is_measured and metric not in metrics:
            metrics.append(metric)
    return metrics


def difference(results: Results, ours: str, other: str, metric: str) -> Difference | None:
    """One contender minus another, paired by seed; None where they have no seed in common.

    metric  after the last round, or AREA under the curve of the main metric
    """
    seeds = results.common_seeds(ours, other)
    if not seeds:
        return None
    if metric == AREA:
        return stats.paired(
            results.areas(ours, results.main_metric, seeds),
            results.areas(other, results.main_metric, seeds),
        )
    return stats.paired(
        results.final_values(ours, metric, seeds), results.final_values(other, metric, seeds)
    )


def fair_means(
    results: Results, contenders: Sequence[str], metric: str | None = None
) -> dict[str, float]:
    """The mean of each contender after the last round, over the seeds that all of them have: seeds
    differ more than contenders. Where they have none in common, over each one's own.

    metric  by default what contenders are judged by
    """
    if not contenders:
        return {}
    metric = metric or judged_by(results)
    seeds = results.common_seeds(*contenders) or None
    means = {}
    for contender in contenders:
        values = results.final_values(contender, metric, seeds)
        means[contender] = float(values.mean())
    return means


def common_contenders(experiments: Sequence[Results]) -> tuple[list[str], list[str]]:
    """Contenders that all experiments have, in the order of the first one, and by name those that
    some lack.
    """
    contender_sets = [set(results.contenders) for results in experiments]
    in_all = set.intersection(*contender_sets)
    everyone = set.union(*contender_sets)
    common = [contender for contender in experiments[0].contenders if contender in in_all]
    return common, sorted(everyone - in_all)


def rivals(results: Results, ours: str, metric: str | None = None) -> dict[str, str | None]:
    """Whom a contender is measured by: a contender, or None, for each of RIVALS.

    The best single family is the one of its candidates with the highest mean of the metric; random
    meta chooses among the same candidates, if such a one took part.
    """
    singles = roles.single_families_of(results, ours)
    means = fair_means(results, singles, metric)
    return {
        BEST_SINGLE: max(means, key=means.__getitem__, default=None),
        RANDOM_META: _random_meta_for(results, ours),
        RANDOM: _random_for(results, ours),
    }


def _random_meta_for(results: Results, ours: str) -> str | None:
    """The first one with the same candidates, else the first one."""
    candidates = results.sample(ours)["families"]
    metas = [contender for contender in roles.random_metas(results) if contender != ours]
    for contender in metas:
        if results.sample(contender)["families"] == candidates:
            return contender
    return metas[0] if metas else None


def _random_for(results: Results, ours: str) -> str | None:
    """The first contender whose examples are drawn at random."""
    for contender in results.contenders:
        families = results.sample(contender)["families"]
        if families == ["random"] and contender != ours:
            return contender
    return None
