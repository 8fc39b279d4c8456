"""Two-level TAILOR: Thompson sampling over families, then over the arms of the family drawn."""

from __future__ import annotations

import numpy as np

from tailor.bandits.base import Contest, Outcomes, SavedState, Selector
from tailor.bandits.checks import check_outcomes, check_slots, check_weights, restored
from tailor.bandits.posteriors import Posterior, Prior, check_forgetting, make_posterior
from tailor.bandits.posteriors.evidence import Evidence, find_evidence
from tailor.errors import InputError

#: observations that the Dirichlet prior of a family is worth, over all classes together
FAMILY_PRIOR = 2.0
#: observations of its own class that an arm starts with
OWN_CLASS_PRIOR = 1.0
#: observations that an arm's Dirichlet prior is worth besides, over all classes together
OTHER_CLASSES_PRIOR = 0.5


class TwoLevelThompsonSampling(Selector):
    """Draw the family first, by what all of its arms found, and then an arm of that family.

    In the flat form (`tailor`) a family with an arm for each of a thousand classes has a thousand
    chances to sample the largest value, and crowds out a family of one arm. Here both start even:
    each slot samples one label distribution a family, and only the winner's arms are sampled next.
    An arm that works for a class starts with the belief that it finds that class.

    forget      in (0, 1]: what a round's evidence counts one round later; 1 forgets nothing
    forgetting  "prior": an arm that is not pulled returns to its prior; "shrink": the prior fades
                too
    evidence    what is learned of a pick: "labels", "surprise", or a function of Outcomes to
                (n, K) in [0, 1]
    lead        a family that has nearly all slots at first and then fewer and fewer; None: no
                family has more than it earns
    lead_labels labels a class at which the lead has half of the slots
    device      "cpu", or the torch device to sample on

    Formula: for every slot φ_f ~ posterior of family f from the sum of its arms' evidence, the
    family argmax_f ⟨v, φ_f⟩; then θ_i ~ posterior of each of its arms, the arm argmax_i ⟨v, θ_i⟩.
    With a lead, the slot is the lead's instead with probability c K / (c K + n): K classes,
    c = lead_labels, n answers to the arms' picks so far.

    Cost: slots × (families + arms of the families drawn) × classes random numbers a round: less
    than the flat form.

    When to use: families of very different size side by side: galaxy with an arm a class beside
    herding with one.

    >>> from tailor.bandits import Contest
    >>> from tailor.task import MultiClass
    >>> arms = ("galaxy[0]", "galaxy[1]", "margin")
    >>> families = ("galaxy", "galaxy", "margin")
    >>> contest = Contest(MultiClass(2), arms, families, (0, 1, -1), rounds=3, slots=4)
    >>> selector = TwoLevelThompsonSampling().begin(contest)
    >>> v = np.array([0.5, -0.5])
    >>> pulled = np.array([0, 1, 2]).repeat(50)
    >>> labels = np.eye(2)[[0, 1, 1]].repeat(50, axis=0)
    >>> selector.learn(Outcomes(0, v, pulled, labels))
    >>> selector.plan(4, v, np.random.default_rng(0))
    array([0, 0, 0, 0])
    """

    name = "two-level"
    families: Posterior

    def __init__(
        self,
        *,
        forget: float = 0.9,
        forgetting: str = "prior",
        evidence: str | Evidence = "labels",
        lead: str | None = None,
        lead_labels: float = 40.0,
        device: str = "cpu",
    ) -> None:
        check_forgetting(forget, forgetting)
        if not lead_labels > 0:
            raise InputError(f"lead_labels is {lead_labels}: it must be above 0")
        self.lead = lead
        self.lead_labels = lead_labels
        self.forget = forget
        self.forgetting = forgetting
        self.evidence = find_evidence(evidence)
        self.device = device

    def reset(self) -> None:
        self._answers = 0  # all that was learned from, whenever
        self._number_families()
        #: of each family the arms, ascending
        self._members: list[np.ndarray] = []
        #: of each family the posterior over its arms; None where it has only one
        self._arms: list[Posterior | None] = []
        for number in range(len(self._names)):
            is_member = self._family_of == number
            members = np.flatnonzero(is_member)
            posterior = self._arm_posterior(members)
            self._members.append(members)
            self._arms.append(posterior)
        contest = _contest_of_families(self.contest, self._names)
        self.families = self._posterior(contest, _family_prior)

    def _number_families(self) -> None:
        """In the order of their first arms."""
        numbers: dict[str, int] = {}
        family_of = []
        for name in self.contest.families:
            number = numbers.setdefault(name, len(numbers))
            family_of.append(number)
        self._names = tuple(numbers)
        #: (M,) the family of each arm
        self._family_of = np.array(family_of)

    def _arm_posterior(self, members: np.ndarray) -> Posterior | None:
        if len(members) == 1:
            return None
        contest = _contest_of_arms(self.contest, members)
        return self._posterior(contest, _own_class_prior)

    def _posterior(self, contest: Contest, prior: Prior) -> Posterior:
        return make_posterior(
            contest,
            forget=self.forget,
            forgetting=self.forgetting,
            prior=prior,
        )

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        slots = check_slots(slots)
        v = check_weights(self.contest, weights)
        family_of_slot = self._plan_families(slots, v, rng)
        drawn_families = np.unique(family_of_slot)
        plan = np.empty(slots, np.int64)
        for number in drawn_families.tolist():
            is_own = family_of_slot == number
            own_slots = np.flatnonzero(is_own)
            plan[own_slots] = self._plan_arms(
                number,
                len(own_slots),
                v,
                rng,
            )
        return plan

    def _plan_arms(
        self,
        family: int,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray | np.int64:
        """The arm of each of a family's slots, (slots,); one number where it has but one arm."""
        members = self._members[family]
        posterior = self._arms[family]
        if posterior is None:
            only_arm: np.int64 = members[0]
            return only_arm
        drawn = posterior.plan(
            slots,
            weights,
            rng,
            device=self.device,
        )
        return members[drawn]

    def _plan_families(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """(slots,) int64: the family of each slot."""
        family_of_slot = self.families.plan(
            slots,
            weights,
            rng,
            device=self.device,
        )
        if self.lead not in self._names:
            return family_of_slot
        lead = self._names.index(self.lead)
        is_lead = rng.random(slots) < self._lead_share()
        family_of_slot[is_lead] = lead
        return family_of_slot

    def _lead_share(self) -> float:
        """The chance of a slot to be the lead's, whatever was found."""
        classes = self.contest.task.size
        head_start = self.lead_labels * classes
        total = head_start + self._answers
        return head_start / total

    def learn(self, outcomes: Outcomes) -> None:
        arms, _ = check_outcomes(self.contest, outcomes)
        vectors = self.evidence(outcomes, self.contest.task)
        families = self._family_of[arms]
        self.families.learn(families, vectors)
        self._answers += len(arms)
        for number, posterior in enumerate(self._arms):
            if posterior is None:
                continue
            is_own = families == number
            own_arms = arms[is_own]
            # Members are ascending, so an arm's place among them is where it would be inserted.
            members = self._members[number]
            places = np.searchsorted(members, own_arms)
            # A posterior without a pull learns too: that a round has passed, and forgets by it.
            own_vectors = vectors[is_own]
            posterior.learn(places, own_vectors)

    def beliefs(self) -> np.ndarray:
        of_families = self.families.mean()
        beliefs = of_families[self._family_of]
        for members, posterior in zip(self._members, self._arms, strict=True):
            if posterior is not None:
                beliefs[members] = posterior.mean()
        return beliefs

    def state(self) -> dict[str, np.ndarray]:
        state = {"answers": np.array(self._answers)}
        for name, posterior in self._posteriors():
            own_state = posterior.state()
            for key, array in own_state.items():
                full_key = f"{name}/{key}"
                state[full_key] = array
        return state

    def restore(self, state: SavedState) -> None:
        answers = restored(state, "answers", ())
        self._answers = int(answers)
        for name, posterior in self._posteriors():
            prefix = f"{name}/"
            own_state = {}
            for full_key, array in state.items():
                if full_key.startswith(prefix):
                    key = full_key.removeprefix(prefix)
                    own_state[key] = array
            posterior.restore(own_state)

    def _posteriors(self) -> list[tuple[str, Posterior]]:
        """All that learn, by a name of their own."""
        named = [("families", self.families)]
        for number, posterior in enumerate(self._arms):
            if posterior is not None:
                named.append((f"arms {number}", posterior))
        return named


def _contest_of_families(contest: Contest, names: tuple[str, ...]) -> Contest:
    """The families of a contest as its arms."""
    no_class = (-1,) * len(names)
    return Contest(
        contest.task,
        names,
        names,
        no_class,
        contest.rounds,
        contest.slots,
    )


def _contest_of_arms(contest: Contest, members: np.ndarray) -> Contest:
    """Some arms of a contest alone."""
    # In the order of the members: a posterior's row is an arm's place among them.
    arms = []
    families = []
    classes = []
    for arm in members:
        arms.append(contest.arms[arm])
        families.append(contest.families[arm])
        classes.append(contest.classes[arm])
    return Contest(
        contest.task,
        tuple(arms),
        tuple(families),
        tuple(classes),
        contest.rounds,
        contest.slots,
    )


def _family_prior(round: int, contest: Contest, evidence: np.ndarray) -> float:
    """The same of every family. A Dirichlet's does not grow with the number of classes: else with
    hundreds of them no round's labels would show beside it.
    """
    if contest.task.kind == "multi-label":
        return 1.0
    return FAMILY_PRIOR / contest.task.size


def _own_class_prior(
    round: int, contest: Contest, evidence: np.ndarray
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Every arm expects to find the class that it works for. (M, K), for Beta a pair of these."""
    classes = np.array(contest.classes)
    size = contest.task.size
    own_class = np.zeros((contest.size, size))
    # An arm that works for no class has -1, which as an index would be the last one.
    arms = np.flatnonzero(classes >= 0)
    class_of_arm = classes[arms]
    own_class[arms, class_of_arm] = OWN_CLASS_PRIOR
    if contest.task.kind == "multi-label":
        uniform = np.ones_like(own_class)
        successes = uniform + own_class
        return successes, uniform
    every_class = OTHER_CLASSES_PRIOR / size
    return own_class + every_class
