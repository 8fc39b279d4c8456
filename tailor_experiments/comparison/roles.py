"""Which part each contender of an experiment plays: TAILOR, a family alone, a rival selector.

Rows hold what a contender was made of (its selector, families and reward), and not its part; that
is told from these.
"""

from __future__ import annotations

from tailor_experiments.comparison.results import Results


def selector_name(results: Results, contender: str) -> str:
    """The name of its selector, without options."""
    return base_name(results.sample(contender)["selector"])


def base_name(text: str) -> str:
    """A name without the options behind it.

    >>> base_name("tailor(forget=1.0)")
    'tailor'
    """
    return text.partition("(")[0].strip()


def tailors(results: Results) -> list[str]:
    """Contenders whose selector is TAILOR, whatever its options."""
    return [
        contender
        for contender in results.contenders
        if selector_name(results, contender) == "tailor"
    ]


def single_families(results: Results) -> list[str]:
    """Families alone. Not random: nothing is learned about its arm."""
    contenders = []
    for contender in results.contenders:
        row = results.sample(contender)
        is_alone = row["selector"] == "random-meta" and len(row["families"]) == 1
        if is_alone and row["families"] != ["random"]:
            contenders.append(contender)
    return contenders


def single_families_of(results: Results, contender: str) -> list[str]:
    """Families alone that are among a contender's candidates; all of them where none is."""
    candidates = {base_name(family) for family in results.sample(contender)["families"]}
    others = [single for single in single_families(results) if single != contender]
    among_candidates = [
        single
        for single in others
        if base_name(results.sample(single)["families"][0]) in candidates
    ]
    return among_candidates or others


def random_metas(results: Results) -> list[str]:
    """Contenders that choose at random among several arms."""
    singles = single_families(results)
    return [
        contender
        for contender in results.contenders
        if results.sample(contender)["selector"] == "random-meta"
        and results.sample(contender)["families"] != ["random"]
        and contender not in singles
    ]


def learners(results: Results) -> list[str]:
    """Contenders that choose among several arms."""
    return [
        contender
        for contender, trials in results.rows.items()
        if any(len(row["pulls"]) > 1 for trial in trials.values() for row in trial)
    ]


def candidate_ablations(results: Results) -> list[list[str]]:
    """TAILORs that differ in nothing but their candidates, a list for each selector and reward."""
    groups: dict[tuple[str, str], list[str]] = {}
    for contender in tailors(results):
        row = results.sample(contender)
        groups.setdefault((row["selector"], row["reward"]), []).append(contender)
    ablations = []
    for members in groups.values():
        candidate_sets = {tuple(results.sample(member)["families"]) for member in members}
        if len(candidate_sets) > 1:
            ablations.append(members)
    return ablations


def focused(results: Results, focus: str | None) -> str:
    """The contender that the others are compared with: the one asked for; else TAILOR, or the
    first that is one.
    """
    if focus is not None and focus in results.rows:
        return focus
    if "TAILOR" in results.rows:
        return "TAILOR"
    return next(iter([*tailors(results), *results.contenders]))
