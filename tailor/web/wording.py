"""Why a picture was chosen, in words for whoever labels it."""

from __future__ import annotations

from typing import Any

#: {0} stands for the class of an arm that works for one class
IDEAS = {
    "reserve": "Picked at random to measure the model. It never trains on these.",
    "random start": "Picked at random: there is no model yet.",
    "(nobody)": "Picked at random: no algorithm had a better idea left.",
    "": "Nobody asked for this one: its label came from outside.",
    "random": "Picked at random, to keep an open eye.",
    "uncertainty": "The model can't tell whether this is {0}.",
    "emal": "The model is unsure about many classes at once here.",
    "weak-supervision": "A second look by the model left it unsure here.",
    "confidence": "The model is least sure of its answer here.",
    "margin": "Two classes seem nearly equally likely here.",
    "entropy": "The model is spread over many classes here.",
    "most-likely-positive": "This looks more like {0} than anything not labelled yet.",
    "galaxy": "It lies at the border of {0}, between examples known to be it and examples known not to be.",
    "galaxy-all": "It lies at the border between two classes.",
    "badge": "The model would learn much from it, and it differs from the others in this round.",
    "submodular": "It stands for many examples that nobody has labelled.",
    "coreset": "It is unlike anything labelled so far.",
    "cluster-margin": "The model wavers here, and it differs from the others in this round.",
    "bald": "Versions of the model disagree about it.",
}


def explained(why: dict[str, Any]) -> dict[str, Any]:
    """What `Room.why` gives, with sentences for the page. What the model thinks is not among them: it would pull the
    answer its way. It stands in `predicted`, for those who ask."""
    arm = str(why["arm"])
    family, _, rest = arm.partition("[")
    name = arm if arm in IDEAS else family.partition("(")[0]
    sentences = [IDEAS.get(name, "Picked by an algorithm of your own.").format(rest.removesuffix("]") or "a class")]
    expected = why.get("expected") or {}
    if expected:
        best, share = max(expected.items(), key=lambda item: item[1])
        sentences.append(f"Of what {arm} picks, about {share:.0%} is expected to be {best}.")
    return {**why, "sentences": sentences}
