"""The paper's settings as experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailor.errors import UnknownName
from tailor_experiments.comparison.experiment import Contender, Experiment

if TYPE_CHECKING:
    from tailor_experiments.datasets.paper import PaperSetting


def paper_experiment(
    name: str,
    path: str,
    *,
    trials: int | None = None,
    device: str = "auto",
    weights: str = "paper",
    wide: bool = False,
    search: bool = False,
    network: str = "resnet18",
) -> Experiment:
    """A setting exactly as the paper has it: ResNet-18, Adam, B, rounds, epochs and candidates.

    weights  "paper": ImageNet's where the paper starts from them; "scratch"; "imagenet"; or the
             path of a weight file
    wide     the ablation: TAILOR with the narrow and with the wide candidate set
    search   the search experiment: the wide set and the search reward
    """
    from tailor_experiments.datasets.paper import PAPER, TRIALS

    if name not in PAPER:
        raise UnknownName("setting of the paper", name, PAPER)
    setting = PAPER[name]
    families = setting.wide if search else setting.narrow
    contenders = _contenders(families)
    # The search experiment has the wide set already.
    if wide and not search:
        contenders.append(Contender("TAILOR, wide", "tailor", setting.wide))
    return Experiment(
        name=f"{name}-search" if search else name,
        data={
            "name": name,
            "path": path,
            "options": {},
        },
        model=_model(
            setting,
            network,
            device,
            weights,
        ),
        contenders=tuple(contenders),
        families=families,
        batch=setting.batch,
        rounds=setting.rounds,
        trials=TRIALS if trials is None else trials,
        reward="search" if search else "diversity",
    )


def _model(
    setting: PaperSetting,
    network: str,
    device: str,
    weights: str,
) -> dict[str, Any]:
    """The paper's recipe for a network. weights: as paper_experiment() has them."""
    from tailor_experiments.datasets.paper import LEARNING_RATE, WEIGHT_DECAY

    recipe = f"batch={setting.training_batch}, lr={LEARNING_RATE}, weight_decay={WEIGHT_DECAY}"
    model = {
        "name": f"finetune({recipe})",
        "network": network,
        "epochs": setting.epochs,
        "device": device,
    }
    if weights == "paper":
        weights = "imagenet" if setting.pretrained else "scratch"
    # Without any, training starts from scratch.
    if weights != "scratch":
        model["weights"] = weights
    return model


def _contenders(families: tuple[str, ...]) -> list[Contender]:
    """Those of the paper's figures."""
    alone = [Contender(f"{family} alone", "random-meta", (family,)) for family in families]
    return [
        Contender("TAILOR", "tailor", families),
        Contender("random", "random-meta", ("random",)),
        *alone,
        Contender("random meta", "random-meta", families),
        Contender("ALBL", "albl", families),
    ]
