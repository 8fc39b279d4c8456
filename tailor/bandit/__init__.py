"""Choosing among arms: rewards, posteriors and the meta-selectors; `registry` finds selectors by name."""

from __future__ import annotations

from tailor.bandit.base import Contest, Fit, Outcomes, Selector
from tailor.registry import Registry

registry: Registry[Selector] = Registry(
    "selector",
    "tailor.selectors",
    {
        "tailor": "tailor.bandit.thompson:Tailor",
        "random-meta": "tailor.bandit.uniform:RandomMeta",
        "albl": "tailor.bandit.albl:Albl",
        "comb": "tailor.bandit.comb:Comb",
        "deal": "tailor.bandit.deal:Deal",
        "linear-thompson": "tailor.bandit.linear:LinearThompson",
        "fixed": "tailor.bandit.fixed:Fixed",
    },
)

__all__ = ["Contest", "Fit", "Outcomes", "Selector", "registry"]
