"""TAILOR: Thompson sampling over arms from the labels that their picks turn out to have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tailor.bandits.base import Contest, Outcomes, Selector
from tailor.bandits.checks import check_outcomes
from tailor.bandits.posteriors.evidence import Evidence, make_evidence
from tailor.bandits.posteriors.family_prior import FamilyPrior
from tailor.bandits.posteriors.label_posterior import Prior, posterior
from tailor.errors import UnknownName


class Tailor(Selector):
    """Pull the arm whose sampled label distribution promises the largest <v, theta>.

    Every slot draws theta afresh for every arm, so a batch spreads over the arms as the posterior
    is unsure. Zhang, Shao, Verma, Nowak 2023, "Algorithm Selection for Deep Active Learning with
    Imbalanced Datasets".

    `evidence` says what the posterior learns from: "labels", "surprise" (see
    tailor.bandits.posteriors.evidence), or a function of Outcomes to (n, K) in [0, 1]. `prior` may
    be "family": what an arm's family has shown (tailor.bandits.posteriors.family_prior), worth
    `worth` observations. `device` other than "cpu" samples on that torch device.

    >>> from tailor.task import MultiClass
    >>> contest = Contest(MultiClass(2), ("a", "b"), ("a", "b"), (-1, -1), rounds=3, slots=4)
    >>> tailor = Tailor(contest)
    >>> v = np.array([0.5, -0.5])
    >>> tailor.learn(Outcomes(0, v, np.array([0, 1]).repeat(50), np.eye(2).repeat(50, axis=0)))
    >>> tailor.plan(4, v, np.random.default_rng(0))
    array([0, 0, 0, 0])
    """

    name = "tailor"

    def __init__(
        self,
        contest: Contest,
        *,
        forget: float = 0.9,
        forgetting: str = "shrink",
        prior: Prior | str = 1.0,
        worth: float = 20.0,
        aggregate: bool = True,
        evidence: str | Evidence = "labels",
        device: str = "cpu",
    ) -> None:
        super().__init__(contest)
        if isinstance(prior, str) and prior != "family":
            raise UnknownName("prior", prior, ["family"])
        chosen = FamilyPrior(worth) if isinstance(prior, str) else prior
        self.posterior = posterior(contest, forget=forget, forgetting=forgetting, prior=chosen)
        self.aggregate = aggregate
        self.evidence = make_evidence(evidence, contest.task)
        self.device = device

    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.posterior.plan(
            slots, weights, rng, aggregate=self.aggregate, device=self.device
        )

    def learn(self, outcomes: Outcomes) -> None:
        arms, _ = check_outcomes(self.contest, outcomes)
        self.posterior.learn(arms, self.evidence(outcomes))

    def beliefs(self) -> np.ndarray:
        return self.posterior.mean()

    def state(self) -> dict[str, np.ndarray]:
        return self.posterior.state()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.posterior.restore(state)
