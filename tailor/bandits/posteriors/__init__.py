"""Distributions over the labels that each arm finds: how they learn, and how they are sampled."""

from __future__ import annotations

from tailor.bandits.base import Contest
from tailor.bandits.posteriors.base import Posterior, Prior, check_forgetting
from tailor.bandits.posteriors.beta import BetaPosterior
from tailor.bandits.posteriors.dirichlet import DirichletPosterior


def make_posterior(
    contest: Contest,
    *,
    forget: float = 0.9,
    forgetting: str = "shrink",
    prior: Prior = 1.0,
) -> Posterior:
    """The posterior that fits the task: Dirichlet for multi-class, Beta for multi-label."""
    posterior_class: type[Posterior] = BetaPosterior
    if contest.task.kind == "multi-class":
        posterior_class = DirichletPosterior
    return posterior_class(
        contest,
        forget=forget,
        forgetting=forgetting,
        prior=prior,
    )


__all__ = [
    "BetaPosterior",
    "DirichletPosterior",
    "Posterior",
    "Prior",
    "check_forgetting",
    "make_posterior",
]
