"""Choosing among arms: rewards, posteriors and the meta-selectors; `registry` finds selectors by
name.
"""

from __future__ import annotations

from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.registry import Registry

registry: Registry[Selector] = Registry(
    "selector",
    "tailor.selectors",
    {
        "tailor": "tailor.bandits.selectors.thompson:Tailor",
        "random-meta": "tailor.bandits.selectors.uniform:RandomMeta",
        "albl": "tailor.bandits.selectors.albl:Albl",
        "comb": "tailor.bandits.selectors.comb:Comb",
        "deal": "tailor.bandits.selectors.deal:Deal",
        "linear-thompson": "tailor.bandits.selectors.linear:LinearThompson",
        "fixed": "tailor.bandits.selectors.fixed:Fixed",
    },
)

__all__ = ["Contest", "Fit", "Outcomes", "Selector", "registry"]
