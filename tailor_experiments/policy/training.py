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
STATES_A_STEP = 32
#: Gains of a state are compared in their own deviations: a batch so many better than another is e
#: times as likely to be the one to imitate.
SHARPNESS = 0.5


def train(states: Sequence[State], seed: int) -> dict[str, np.ndarray]:
    """The network's weights, by name, as PolicyNetwork takes them.

    A batch is as likely, by the network, as the mean of its examples' numbers says (softmax over
    the candidate batches of a state); the loss is the cross-entropy from what the gains say.
    """
    inputs, targets = _examples(states)
    generator = torch.Generator().manual_seed(seed)
    layers = _layers(generator)
    optimiser = _optimiser(layers)
    for _ in range(EPOCHS):
        order = torch.randperm(len(inputs), generator=generator)
        for chosen in order.split(STATES_A_STEP):
            loss = _loss(layers, inputs[chosen], targets[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return _weights(layers)


def _examples(states: Sequence[State]) -> tuple[Tensor, Tensor]:
    """Of s states: inputs (s, m, b, 11), and how far each batch is to be imitated, (s, m)."""
    inputs = []
    targets = []
    for state in states:
        inputs.append(state.inputs)
        targets.append(_imitated(state.gains))
    stacked_inputs = np.stack(inputs)
    stacked_targets = np.stack(targets)
    return torch.from_numpy(stacked_inputs), torch.from_numpy(stacked_targets)


def _optimiser(layers: Sequence[nn.Linear]) -> torch.optim.Optimizer:
    parameters: list[nn.Parameter] = []
    for layer in layers:
        parameters += layer.parameters()
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)


def _loss(layers: Sequence[nn.Linear], inputs: Tensor, targets: Tensor) -> Tensor:
    """inputs (s, m, b, 11), targets (s, m) -> the mean cross-entropy of the states."""
    numbers = _forward(layers, inputs)
    of_batches = numbers.mean(2)
    log_chances = of_batches.log_softmax(1)
    agreement = targets * log_chances
    return -agreement.sum(1).mean()


def _weights(layers: Sequence[nn.Linear]) -> dict[str, np.ndarray]:
    """By the names that PolicyNetwork gives them."""
    weights = {}
    for name, layer in zip(LAYERS, layers, strict=True):
        weights[f"{name}.weight"] = layer.weight.detach().numpy()
        weights[f"{name}.bias"] = layer.bias.detach().numpy()
    return weights


def _imitated(gains: np.ndarray) -> np.ndarray:
    """gains (m,) -> (m,) float32: the share of each batch in what is imitated."""
    deviation = gains.std()
    if deviation == 0:
        count = len(gains)
        return np.full(count, 1 / count, np.float32)
    behind_best = gains - gains.max()
    scale = SHARPNESS * deviation
    powers = np.exp(behind_best / scale)
    shares = powers / powers.sum()
    return shares.astype(np.float32)


def _layers(generator: torch.Generator) -> list[nn.Linear]:
    """Layers with random weights, from the inputs to one number."""
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
    *hidden_layers, last_layer = layers
    values = inputs
    for layer in hidden_layers:
        values = F.relu(layer(values))
    numbers = last_layer(values)
    return numbers.squeeze(-1)
