"""Training the network to tell the best candidate batch of each state from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.strategies.policy_inputs import INPUTS
from tailor.strategies.policy_network import LAYERS
from tailor_experiments.policy.imitation import State

HIDDEN = (32, 16)
EPOCHS = 200
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
#: Gains of a state are compared in their own deviations: a batch so many better than another is e
#: times as likely to be the one to imitate.
SHARPNESS = 0.5


def train(states: Sequence[State], seed: int) -> dict[str, np.ndarray]:
    """The network's weights, by name, as PolicyNetwork takes them.

    A batch is as likely, by the network, as the mean of its examples' numbers says (softmax over
    the candidate batches of a state); the loss is the cross-entropy from what the gains say.
    """
    inputs = torch.from_numpy(np.stack([state.inputs for state in states]))
    targets = torch.from_numpy(np.stack([_imitated(state.gains) for state in states]))
    generator = torch.Generator().manual_seed(seed)
    layers = _layers(generator)
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(inputs), generator=generator).split(32):
            numbers = _forward(layers, inputs[chosen]).mean(2)
            log_chances = numbers.log_softmax(1)
            loss = -(targets[chosen] * log_chances).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    weights = {}
    for name, layer in zip(LAYERS, layers, strict=True):
        weights[f"{name}.weight"] = layer.weight.detach().numpy()
        weights[f"{name}.bias"] = layer.bias.detach().numpy()
    return weights


def _imitated(gains: np.ndarray) -> np.ndarray:
    """gains (m,) -> (m,) float32: the share of each batch in what is imitated."""
    deviation = gains.std()
    if deviation == 0:
        return np.full(len(gains), 1 / len(gains), np.float32)
    powers = np.exp((gains - gains.max()) / (SHARPNESS * deviation))
    return (powers / powers.sum()).astype(np.float32)


def _layers(generator: torch.Generator) -> list[nn.Linear]:
    widths = (len(INPUTS), *HIDDEN, 1)
    layers = []
    for width, outputs in zip(widths, widths[1:]):
        layer = nn.utils.skip_init(nn.Linear, width, outputs)
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(layer.bias)
        layers.append(layer)
    return layers


def _forward(layers: Sequence[nn.Linear], inputs: Tensor) -> Tensor:
    """inputs (..., 11) -> (...)"""
    values = inputs
    for layer in layers[:-1]:
        values = F.relu(layer(values))
    return layers[-1](values).squeeze(-1)
