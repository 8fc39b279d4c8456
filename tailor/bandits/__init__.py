"""Choosing among arms: selectors, the posteriors that they learn, and rewards.

`registry` finds selectors by name; `make_selector` makes one. The classes are imported when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.common.lazy_import import lazy_import
from tailor.registry import Registry

if TYPE_CHECKING:
    from tailor.bandits.rewards import Difficulty as Difficulty
    from tailor.bandits.rewards import Diversity as Diversity
    from tailor.bandits.rewards import Domain as Domain
    from tailor.bandits.rewards import Reward as Reward
    from tailor.bandits.rewards import Search as Search
    from tailor.bandits.rewards import make_reward as make_reward
    from tailor.bandits.selectors.albl import ALBL as ALBL
    from tailor.bandits.selectors.comb import COMB as COMB
    from tailor.bandits.selectors.deal import DEAL as DEAL
    from tailor.bandits.selectors.fixed_arm import FixedArm as FixedArm
    from tailor.bandits.selectors.linear_thompson_sampling import (
        LinearThompsonSampling as LinearThompsonSampling,
    )
    from tailor.bandits.selectors.random_meta import RandomMeta as RandomMeta
    from tailor.bandits.selectors.thompson_sampling import ThompsonSampling as ThompsonSampling
    from tailor.bandits.selectors.two_level_thompson_sampling import (
        TwoLevelThompsonSampling as TwoLevelThompsonSampling,
    )

registry: Registry[Selector] = Registry(
    "selector",
    "tailor.selectors",
    {
        "tailor": "tailor.bandits.selectors.thompson_sampling:ThompsonSampling",
        "two-level": (
            "tailor.bandits.selectors.two_level_thompson_sampling:TwoLevelThompsonSampling"
        ),
        "random-meta": "tailor.bandits.selectors.random_meta:RandomMeta",
        "albl": "tailor.bandits.selectors.albl:ALBL",
        "comb": "tailor.bandits.selectors.comb:COMB",
        "deal": "tailor.bandits.selectors.deal:DEAL",
        "linear-thompson": (
            "tailor.bandits.selectors.linear_thompson_sampling:LinearThompsonSampling"
        ),
        "fixed": "tailor.bandits.selectors.fixed_arm:FixedArm",
    },
)

_PUBLIC = {
    **registry.builtin_classes(),
    "Difficulty": "tailor.bandits.rewards",
    "Diversity": "tailor.bandits.rewards",
    "Domain": "tailor.bandits.rewards",
    "Reward": "tailor.bandits.rewards",
    "Search": "tailor.bandits.rewards",
    "make_reward": "tailor.bandits.rewards",
}


#: What `auto` is.
AUTO_SELECTOR = "two-level(lead=herding)"


#: a selector by its name, its name with options, or itself
SelectorLike = str | tuple[str, dict[str, Any]] | Selector


def make_selector(given: SelectorLike) -> Selector:
    """A selector from its name, "name(option=value)", (name, options) or itself; "auto" is the
    default of a new run.
    """
    if isinstance(given, Selector):
        return given
    if given == "auto":
        given = AUTO_SELECTOR
    name, options = registry.named(given)
    return registry.make(name, **options)


if not TYPE_CHECKING:
    __getattr__ = lazy_import(__name__, _PUBLIC)

__all__ = [
    "ALBL",
    "COMB",
    "DEAL",
    "Contest",
    "Difficulty",
    "Diversity",
    "Domain",
    "Fit",
    "FixedArm",
    "LinearThompsonSampling",
    "Outcomes",
    "RandomMeta",
    "Reward",
    "Search",
    "Selector",
    "ThompsonSampling",
    "TwoLevelThompsonSampling",
    "make_reward",
    "make_selector",
    "registry",
]
