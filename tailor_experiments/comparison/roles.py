"""Which part each contender of an experiment plays: TAILOR, a family alone, a rival selector.

Rows hold what a contender was made of (its selector, families and reward), and not its part; that
is told from these.
"""

from __future__ import annotations

from itertools import chain

from tailor_experiments.comparison.results import Results


def selector_name(results: Results, contender: str) -> str:
    """The name of its selector, without options."""
    return base_name(results.sample(contender)["selector"])


def base_name(text: str) -> str:
    """A name without the options behind it.

    >>> base_name("tailor(forget=1.0)")
    'tailor'
    """
    # Options stand in brackets behind the name.
    return text.partition("(")[0].strip()


def tailors(results: Results) -> list[str]:
    """Contenders whose selector is TAILOR, whatever its options."""
    contenders = []
    for contender in results.contenders:
        if selector_name(results, contender) == "tailor":
            contenders.append(contender)
    return contenders


def single_families(results: Results) -> list[str]:
    """Families alone. Not random: nothing is learned about its arm."""
    contenders = []
    for contender in results.contenders:
        if _is_alone(results, contender):
            contenders.append(contender)
    return contenders


def _is_alone(results: Results, contender: str) -> bool:
    families = results.sample(contender)["families"]
    if len(families) != 1:
        return False
    return _chooses_among_arms_at_random(results, contender)


def _chooses_among_arms_at_random(results: Results, contender: str) -> bool:
    """Whether its selector does; not where examples themselves are drawn at random."""
    row = results.sample(contender)
    # Random is a random-meta, too, over a single arm that picks at random.
    if row["selector"] != "random-meta":
        return False
    return row["families"] != ["random"]


def single_families_of(results: Results, contender: str) -> list[str]:
    """Families alone that are among a contender's candidates; all of them where none is."""
    families = results.sample(contender)["families"]
    candidates = {base_name(family) for family in families}
    others = single_families(results)
    if contender in others:
        others.remove(contender)
    among_candidates = []
    for single in others:
        (family,) = results.sample(single)["families"]
        if base_name(family) in candidates:
            among_candidates.append(single)
    # A contender over none of them is compared with all.
    return among_candidates or others


def random_metas(results: Results) -> list[str]:
    """Contenders that choose at random among several arms."""
    singles = single_families(results)
    contenders = []
    for contender in results.contenders:
        if contender in singles:
            continue
        if _chooses_among_arms_at_random(results, contender):
            contenders.append(contender)
    return contenders


def learners(results: Results) -> list[str]:
    """Contenders that choose among several arms."""
    contenders = []
    for contender in results.contenders:
        if _pulls_several(results, contender):
            contenders.append(contender)
    return contenders


def _pulls_several(results: Results, contender: str) -> bool:
    """Whether there is a round in which it has more than one arm."""
    trials = results.rows[contender]
    rows = chain.from_iterable(trials.values())
    return any(len(row["pulls"]) > 1 for row in rows)


def candidate_ablations(results: Results) -> list[list[str]]:
    """TAILORs that differ in nothing but their candidates, a list for each selector and reward."""
    ablations = []
    for members in _by_selector_and_reward(results).values():
        if _differ_in_candidates(results, members):
            ablations.append(members)
    return ablations


def _by_selector_and_reward(results: Results) -> dict[tuple[str, str], list[str]]:
    """(selector, reward) -> the TAILORs that have them"""
    groups: dict[tuple[str, str], list[str]] = {}
    for contender in tailors(results):
        row = results.sample(contender)
        key = (row["selector"], row["reward"])
        groups.setdefault(key, []).append(contender)
    return groups


def _differ_in_candidates(results: Results, contenders: list[str]) -> bool:
    candidate_sets = set()
    for contender in contenders:
        families = results.sample(contender)["families"]
        candidate_sets.add(tuple(families))
    return len(candidate_sets) > 1


def focused(results: Results, focus: str | None) -> str:
    """The contender that the others are compared with: the one asked for; else TAILOR, or the
    first that is one.
    """
    if focus is not None and focus in results.rows:
        return focus
    if "TAILOR" in results.rows:
        return "TAILOR"
    # Without any TAILOR, whoever comes first.
    candidates = tailors(results) or results.contenders
    return candidates[0]
