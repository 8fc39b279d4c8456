"""Why a picture was chosen, in words for whoever labels it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

#: What an arm picks, it picks among what was left: "least" and "most" are said of that, never of
#: all there is. {0} stands for the class of an arm that works for one class.
IDEAS = {
    "hold-out": "Picked at random to measure the model. It never trains on these.",
    "coverage start": "It stands for a group of examples that look alike, for a first look at all "
    "there is.",
    "random start": "Picked at random: there is no model yet.",
    "(nobody)": "Picked at random: no algorithm had a better idea left.",
    "": "Nobody asked for this one: its label came from outside.",
    "random": "Picked at random, to keep an open eye.",
    "uncertainty": "Of what was left, this is among those where the model can least tell whether "
    "it is {0}.",
    "emal": "Of what was left, this is among those where the model is least sure about many "
    "classes at once.",
    "weak-supervision": "Of what was left, this is among those that a second look by the model "
    "left it least sure of.",
    "confidence": "Of what was left, this is among those the model was least sure of.",
    "margin": "Of what was left, this is among those where two classes come closest.",
    "entropy": "Of what was left, this is among those where the model spread its answer over "
    "most classes.",
    "most-likely-positive": "Of what was left, this is among those that look most like {0}.",
    "most-certain": "Of what was left, this is among those that the model is surest of.",
    "galaxy": "It lies at the border of {0}, between examples known to be it and examples known "
    "not to be.",
    "galaxy-all": "It lies at the border between two classes.",
    "direct": "It lies where the answers so far part {0} from the rest, or close by.",
    "badge": "The model would learn much from it, and it differs from the others in this round.",
    "submodular": "It stands for many examples that nobody has labelled.",
    "coreset": "Of what was left, this is among those least like anything labelled so far.",
    "cluster-margin": "Of what was left, two classes come close here, and it differs from the "
    "others in this round.",
    "herding": "It stands for others like it that the model is unsure of, and nothing near it is "
    "labelled.",
    "typiclust": "It is typical of a group of examples of which few or none are labelled.",
    "probcover": "Many examples are like it, and nothing like them is labelled.",
    "base": "Of what was left, this is among those nearest to the border of {0}.",
    "deepfool": "Of what was left, this is among those that a small change would bring into "
    "another class.",
    "bait": "Its label would tell the model most about all examples, beside those in this round.",
    "lookahead": "Its label would change most of what the model thinks of the other examples.",
    "committee": "Of what was left, this is among those that models trained on different samples "
    "of your labels disagree about most.",
    "discriminator": "Of what was left, this is among those that are easiest to tell from "
    "everything labelled so far.",
    "ally": "It is like labelled examples that are hard to get right, and stands for a group of "
    "its own in this round.",
    "similar": "It is like the labelled examples of a rare class, and differs from the others in "
    "this round.",
    "ens": "It may be {0}, and knowing it says most about where to look for more.",
    "dual": "The model is unsure of it; while labels are few, it is one of many that look alike.",
    "farthest": "Of what was left, this is among those least like anything labelled so far.",
    "seals": "It lies near examples that are labelled already.",
    "learned": "A rule that was learned on other collections expects most of its label.",
    "bald": "Of what was left, this is among those that versions of the model agree least about.",
}

#: arms that look for doubt
DOUBTING = {
    "uncertainty",
    "emal",
    "weak-supervision",
    "confidence",
    "margin",
    "entropy",
    "cluster-margin",
    "deepfool",
}
#: the probability from which on the model counts as sure, and what is said where no doubt is left
SURE = 0.8
NO_DOUBT = "The model was fairly sure of all that was left; of this one a little less than of most."


def explain_to_annotator(why: dict[str, Any]) -> dict[str, Any]:
    """What `Coordinator.why` gives, with sentences for whoever labels the example.

    What the model thinks is not among them: it would pull the answer its way. It stands in
    "predicted", for those who ask.
    """
    arm = str(why["arm"])
    # Such as "galaxy[cat]", and "galaxy(pending=revealed)[cat]" where options are set.
    family, _, in_brackets = arm.partition("[")
    class_name = in_brackets.removesuffix("]") or "a class"
    name = arm
    if arm not in IDEAS:
        name, _, _ = family.partition("(")
    idea = IDEAS.get(name, "Picked by an algorithm of your own.")
    probabilities = why["predicted"].values()
    if name in DOUBTING and _is_sure(probabilities):
        idea = NO_DOUBT
    sentences = [idea.format(class_name)]
    expected = why.get("expected")
    if expected:
        likeliest = max(expected, key=expected.__getitem__)
        share = expected[likeliest]
        sentences.append(f"Of what {arm} picks, about {share:.0%} is expected to be {likeliest}.")
    round_number = why.get("round", -1)
    if round_number >= 0:
        sentences.append(f"Asked for in round {round_number + 1}.")
    return {**why, "sentences": sentences}


def _is_sure(probabilities: Collection[float]) -> bool:
    """Whether the likeliest classes are clearly so, and the others clearly not."""
    if max(probabilities, default=0) < SURE:
        return False
    in_doubt = []
    for probability in probabilities:
        if 1 - SURE < probability < SURE:
            in_doubt.append(probability)
    return not in_doubt
