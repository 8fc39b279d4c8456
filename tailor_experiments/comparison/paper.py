"""The paper's settings as experiments."""

from __future__ import annotations

from tailor.errors import UnknownName
from tailor_experiments.comparison.experiment import Contender, Experiment


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
    from tailor_experiments.datasets.paper import LEARNING_RATE, PAPER, TRIALS, WEIGHT_DECAY

    if name not in PAPER:
        raise UnknownName("setting of the paper", name, PAPER)
    setting = PAPER[name]
    recipe = f"batch={setting.training_batch}, lr={LEARNING_RATE}, weight_decay={WEIGHT_DECAY}"
    model = {
        "name": f"finetune({recipe})",
        "network": network,
        "epochs": setting.epochs,
        "device": device,
    }
    if weights == "paper":
        weights = "imagenet" if setting.pretrained else "scratch"
    if weights != "scratch":
        model["weights"] = weights
    families = setting.wide if search else setting.narrow
    contenders = [
        Contender("TAILOR", "tailor", families),
        Contender("random", "random-meta", ("random",)),
        *(Contender(f"{family} alone", "random-meta", (family,)) for family in families),
        Contender("random meta", "random-meta", families),
        Contender("ALBL", "albl", families),
    ]
    if wide and not search:
        contenders.append(Contender("TAILOR, wide", "tailor", setting.wide))
    return Experiment(
        name=f"{name}-search" if search else name,
        data={"name": name, "path": path, "options": {}},
        model=model,
        contenders=tuple(contenders),
        families=families,
        batch=setting.batch,
        rounds=setting.rounds,
        trials=TRIALS if trials is None else trials,
        reward="search" if search else "diversity",
    )
