"""The paper's ten settings: what each dataset should be, and how it was run."""

from __future__ import annotations

from dataclasses import dataclass

from tailor.strategies import NARROW, WIDE


@dataclass(frozen=True)
class PaperSetting:
    """One row of the paper's tables.

    classes           K
    pool              N
    class_imbalance   smallest class over largest
    binary_imbalance  mean positive rate, multi-label only
    batch             B, the size of the seed set too
    pretrained        training starts from ImageNet weights
    drawn             the pool is a random part, so the ratios of another draw differ a little
    """

    name: str
    title: str
    multilabel: bool
    classes: int
    pool: int
    class_imbalance: float
    binary_imbalance: float | None
    batch: int
    rounds: int
    epochs: int
    training_batch: int = 50
    pretrained: bool = True
    drawn: bool = False

    @property
    def narrow(self) -> tuple[str, ...]:
        """Families of the main experiments' candidate set."""
        return tuple(NARROW[self._kind])

    @property
    def wide(self) -> tuple[str, ...]:
        """Families of the ablation's candidate set."""
        return tuple(WIDE[self._kind])

    @property
    def _kind(self) -> str:
        """The kind of task."""
        return "multi-label" if self.multilabel else "multi-class"


PAPER: dict[str, PaperSetting] = {
    setting.name: setting
    for setting in (
        PaperSetting(
            "celeba",
            "CelebA",
            True,
            40,
            162_770,
            0.0273,
            0.2257,
            10_000,
            10,
            8,
        ),
        PaperSetting(
            "coco",
            "COCO 2014",
            True,
            80,
            82_081,
            0.0028,
            0.0367,
            5_000,
            10,
            10,
        ),
        PaperSetting(
            "voc",
            "PASCAL VOC",
            True,
            20,
            10_000,
            0.0749,
            0.0721,
            500,
            20,
            15,
            drawn=True,
        ),
        PaperSetting(
            "cars",
            "Stanford Cars",
            True,
            10,
            12_948,
            0.1572,
            0.1200,
            500,
            20,
            15,
            drawn=True,
        ),
        PaperSetting(
            "imagenet",
            "ImageNet-1k",
            False,
            1_000,
            1_281_167,
            0.5631,
            None,
            20_000,
            7,
            20,
            200,
            pretrained=False,
        ),
        PaperSetting(
            "kuzushiji49",
            "Kuzushiji-49",
            False,
            49,
            23_236,
            0.0545,
            None,
            1_000,
            10,
            10,
            drawn=True,
        ),
        PaperSetting(
            "caltech256",
            "Caltech-256",
            False,
            256,
            24_486,
            0.0761,
            None,
            1_000,
            20,
            15,
            drawn=True,
        ),
        PaperSetting(
            "cifar10-2",
            "CIFAR-10, 2 classes",
            False,
            2,
            50_000,
            0.1111,
            None,
            2_000,
            20,
            10,
        ),
        PaperSetting(
            "cifar100-10",
            "CIFAR-100, 10 classes",
            False,
            10,
            50_000,
            0.0110,
            None,
            2_000,
            20,
            10,
        ),
        PaperSetting(
            "svhn-2",
            "SVHN, 2 classes",
            False,
            2,
            73_257,
            0.0724,
            None,
            7_000,
            10,
            10,
        ),
    )
}
#: the same in all settings
LEARNING_RATE = 1e-4
WEIGHT_DECAY = 5e-5
#: for each contender
TRIALS = 4
#: rounds over which the paper's curves are smoothed
SMOOTHING = 3
