"""How much the members of a committee disagree about each example."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tailor.strategies.entropies import label_entropy
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch

#: (logits (n, K) of each member, task) -> (n,) float64, the larger the more they disagree
Measure = Callable[[Iterable["torch.Tensor"], Task], "torch.Tensor"]


def label_probabilities(logits: torch.Tensor, task: Task) -> torch.Tensor:
    """(n, K) -> (n, K) float64: a softmax, in a multi-label task the sigmoid of each."""
    if isinstance(task, MultiClass):
        return logits.double().softmax(1)
    return logits.double().sigmoid()


def mutual_information(members: Iterable[torch.Tensor], task: Task) -> torch.Tensor:
    """Entropy of the mean prediction less the mean entropy, in nats."""
    totals: torch.Tensor | None = None
    count = 0
    # Summed as they come: a thousand classes of many members would not fit.
    for logits in members:
        probs = label_probabilities(logits, task)
        entropies = label_entropy(probs, task)
        if totals is None:
            totals = probs
            total_entropy = entropies
        else:
            totals += probs
            total_entropy += entropies
        count += 1
    assert totals is not None
    mean_entropy = total_entropy / count
    return label_entropy(totals / count, task) - mean_entropy


def vote_shares(members: Iterable[torch.Tensor], task: Task) -> torch.Tensor:
    """(n, K) float64: the share of members that vote for each class of each example."""
    votes: torch.Tensor | None = None
    count = 0
    for logits in members:
        # A sigmoid is above a half where its logit is above 0.
        probs = label_probabilities(logits, task)
        predicted = task.predicted(probs).double()
        if votes is None:
            votes = predicted
        else:
            votes = votes + predicted
        count += 1
    assert votes is not None
    return votes / count


def vote_entropy(members: Iterable[torch.Tensor], task: Task) -> torch.Tensor:
    """Entropy of the votes, in nats."""
    return label_entropy(vote_shares(members, task), task)


def variation_ratio(members: Iterable[torch.Tensor], task: Task) -> torch.Tensor:
    """The share of votes against the most frequent one; in a multi-label task summed over the
    classes.
    """
    shares = vote_shares(members, task)
    if isinstance(task, MultiClass):
        return 1 - shares.amax(1)
    most_frequent = shares.maximum(1 - shares)
    return (1 - most_frequent).sum(1)


#: by the name of the option
MEASURES: dict[str, Measure] = {
    "information": mutual_information,
    "vote-entropy": vote_entropy,
    "variation-ratio": variation_ratio,
}
