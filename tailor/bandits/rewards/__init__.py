"""Rewards: what a label of each class is worth in a round. `registry` finds them by name."""

from __future__ import annotations

from typing import Any

from tailor.bandits.rewards.base import LabelSummary, Reward
from tailor.bandits.rewards.difficulty import Difficulty
from tailor.bandits.rewards.diversity import Diversity
from tailor.bandits.rewards.domain import Domain
from tailor.bandits.rewards.search import Search
from tailor.registry import Registry

registry: Registry[Reward] = Registry(
    "reward",
    "tailor.rewards",
    {
        "diversity": "tailor.bandits.rewards.diversity:Diversity",
        "search": "tailor.bandits.rewards.search:Search",
        "domain": "tailor.bandits.rewards.domain:Domain",
        "difficulty": "tailor.bandits.rewards.difficulty:Difficulty",
    },
)


#: a reward by its name, its name with options, or itself
RewardLike = str | tuple[str, dict[str, Any]] | Reward


def make_reward(given: RewardLike) -> Reward:
    """A reward from its name, "name(option=value)", (name, options) or itself."""
    if isinstance(given, Reward):
        return given
    name, options = registry.named(given)
    return registry.make(name, **options)


__all__ = [
    "Difficulty",
    "Diversity",
    "Domain",
    "LabelSummary",
    "Reward",
    "Search",
    "make_reward",
    "registry",
]
