"""The arms. One family a file; `registry` finds them by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tailor.common.checks import check_list
from tailor.common.lazy_import import lazy_import
from tailor.errors import InputError
from tailor.registry import Registry
from tailor.strategies.base import Arm, Cursor, Idea, SeparateArms, Strategy
from tailor.strategies.score_strategy import ScoreStrategy
from tailor.task import Task

if TYPE_CHECKING:
    from tailor.strategies.ally import Ally as Ally
    from tailor.strategies.badge import Badge as Badge
    from tailor.strategies.bait import Bait as Bait
    from tailor.strategies.balanced_selection import BalancedSelection as BalancedSelection
    from tailor.strategies.bald import Bald as Bald
    from tailor.strategies.cluster_margin import ClusterMargin as ClusterMargin
    from tailor.strategies.committee import Committee as Committee
    from tailor.strategies.confidence import Confidence as Confidence
    from tailor.strategies.coreset import Coreset as Coreset
    from tailor.strategies.coreset import Farthest as Farthest
    from tailor.strategies.deepfool import Deepfool as Deepfool
    from tailor.strategies.direct import Direct as Direct
    from tailor.strategies.discriminator import Discriminator as Discriminator
    from tailor.strategies.dual import Dual as Dual
    from tailor.strategies.emal import Emal as Emal
    from tailor.strategies.ens import Ens as Ens
    from tailor.strategies.entropy import Entropy as Entropy
    from tailor.strategies.galaxy.galaxy import Galaxy as Galaxy
    from tailor.strategies.galaxy.galaxy_all import GalaxyAll as GalaxyAll
    from tailor.strategies.herding import Herding as Herding
    from tailor.strategies.learned import Learned as Learned
    from tailor.strategies.lookahead import Lookahead as Lookahead
    from tailor.strategies.margin import Margin as Margin
    from tailor.strategies.most_likely_positive import MostLikelyPositive as MostLikelyPositive
    from tailor.strategies.probcover import Probcover as Probcover
    from tailor.strategies.random import Random as Random
    from tailor.strategies.seals import Seals as Seals
    from tailor.strategies.similar import Similar as Similar
    from tailor.strategies.submodular import Submodular as Submodular
    from tailor.strategies.typiclust import Typiclust as Typiclust
    from tailor.strategies.uncertainty import Uncertainty as Uncertainty
    from tailor.strategies.weak_supervision import WeakSupervision as WeakSupervision

registry: Registry[Strategy] = Registry(
    "arm family",
    "tailor.strategies",
    {
        "random": "tailor.strategies.random:Random",
        "uncertainty": "tailor.strategies.uncertainty:Uncertainty",
        "emal": "tailor.strategies.emal:Emal",
        "weak-supervision": "tailor.strategies.weak_supervision:WeakSupervision",
        "confidence": "tailor.strategies.confidence:Confidence",
        "margin": "tailor.strategies.margin:Margin",
        "entropy": "tailor.strategies.entropy:Entropy",
        "most-likely-positive": "tailor.strategies.most_likely_positive:MostLikelyPositive",
        "galaxy": "tailor.strategies.galaxy.galaxy:Galaxy",
        "galaxy-all": "tailor.strategies.galaxy.galaxy_all:GalaxyAll",
        "badge": "tailor.strategies.badge:Badge",
        "submodular": "tailor.strategies.submodular:Submodular",
        "coreset": "tailor.strategies.coreset:Coreset",
        "cluster-margin": "tailor.strategies.cluster_margin:ClusterMargin",
        "bald": "tailor.strategies.bald:Bald",
        "herding": "tailor.strategies.herding:Herding",
        "typiclust": "tailor.strategies.typiclust:Typiclust",
        "probcover": "tailor.strategies.probcover:Probcover",
        "direct": "tailor.strategies.direct:Direct",
        "seals": "tailor.strategies.seals:Seals",
        "learned": "tailor.strategies.learned:Learned",
        "base": "tailor.strategies.balanced_selection:BalancedSelection",
        "deepfool": "tailor.strategies.deepfool:Deepfool",
        "bait": "tailor.strategies.bait:Bait",
        "lookahead": "tailor.strategies.lookahead:Lookahead",
        "committee": "tailor.strategies.committee:Committee",
        "discriminator": "tailor.strategies.discriminator:Discriminator",
        "ally": "tailor.strategies.ally:Ally",
        "similar": "tailor.strategies.similar:Similar",
        "ens": "tailor.strategies.ens:Ens",
        "dual": "tailor.strategies.dual:Dual",
        "farthest": "tailor.strategies.coreset:Farthest",
    },
)

#: The paper's narrow candidate sets, by kind of task.
NARROW = {
    "multi-class": ["galaxy", "confidence", "badge"],
    "multi-label": ["emal", "uncertainty", "galaxy"],
}
#: The sets of the paper's ablation and search experiments.
WIDE = {
    "multi-class": [*NARROW["multi-class"], "most-likely-positive", "submodular"],
    "multi-label": [*NARROW["multi-label"], "most-likely-positive", "weak-supervision"],
}
#: What `auto` is: herding leads while labels are few, the others find what it passes over.
AUTO = {
    "multi-class": ["herding", "galaxy", "margin", "badge"],
    "multi-label": ["herding", "galaxy", "uncertainty"],
}
#: Names that stand for several families, by kind of task.
SETS = {"auto": AUTO, "narrow": NARROW, "wide": WIDE}


#: a family by its name, its name with options, or itself
StrategyLike = str | tuple[str, dict[str, Any]] | Strategy


def expand_sets(strategies: Iterable[Any], kind: str) -> list[Any]:
    """Families in which "auto", "narrow" and "wide" stand for the sets for the kind of task. What a
    set has in common with others is listed once.

    >>> expand_sets(["narrow", "coreset"], "multi-class")
    ['galaxy', 'confidence', 'badge', 'coreset']
    """
    expanded: list[Any] = []
    for strategy in strategies:
        is_set = isinstance(strategy, str) and strategy in SETS
        if not is_set:
            expanded.append(strategy)
            continue
        for name in SETS[strategy][kind]:
            if name not in expanded:
                expanded.append(name)
    return expanded


def make_strategy(given: StrategyLike) -> Strategy:
    """A family from its name, "name(option=value)", (name, options) or itself."""
    if isinstance(given, Strategy):
        return given
    name, options = registry.named(given)
    return registry.make(name, **options)


def make_arms(strategies: str | Iterable[StrategyLike], task: Task) -> list[Arm]:
    """The arms of several families, in order, for one task. A text is one family, or "auto",
    "narrow" or "wide", sets of them.
    """
    families: Iterable[Any] = [strategies]
    if not isinstance(strategies, str):
        families = check_list(strategies, "strategies", "arm families")
    arms = list[Arm]()
    for family in expand_sets(families, task.kind):
        arms += make_strategy(family).arms(task)
    if not arms:
        raise InputError(
            "strategies is empty, no arm is there: name at least one of "
            f"{', '.join(registry.names())}"
        )
    counts = Counter(arm.name for arm in arms)
    # By name, so that the message is the same in whatever order the families came.
    for name in sorted(counts):
        if counts[name] > 1:
            raise InputError(f"arm {name!r} is there more than once: name each family once")
    return arms


if not TYPE_CHECKING:
    __getattr__ = lazy_import(__name__, registry.builtin_classes())

__all__ = [
    "AUTO",
    "NARROW",
    "SETS",
    "WIDE",
    "Ally",
    "Arm",
    "Badge",
    "Bait",
    "BalancedSelection",
    "Bald",
    "ClusterMargin",
    "Committee",
    "Confidence",
    "Coreset",
    "Cursor",
    "Deepfool",
    "Direct",
    "Discriminator",
    "Dual",
    "Emal",
    "Ens",
    "Entropy",
    "Farthest",
    "Galaxy",
    "GalaxyAll",
    "Herding",
    "Idea",
    "Learned",
    "Lookahead",
    "Margin",
    "MostLikelyPositive",
    "Probcover",
    "Random",
    "ScoreStrategy",
    "Seals",
    "SeparateArms",
    "Similar",
    "Strategy",
    "Submodular",
    "Typiclust",
    "Uncertainty",
    "WeakSupervision",
    "expand_sets",
    "make_arms",
    "make_strategy",
    "registry",
]
