"""Adam and L-BFGS do what torch's do, without importing torch's compiler."""

from __future__ import annotations

import pytest
import torch

from tailor.models import optimizers

ADAM = {"lr": 0.01, "weight_decay": 0.02, "fused": True}
SEARCH = {"max_iter": 5, "line_search_fn": "strong_wolfe"}


def trained(optimizer, options):
    """Weights after 20 steps on made-up data, those that get no gradient among them."""
    torch.manual_seed(0)
    inputs = torch.randn(20, 8)
    network = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    unused = torch.nn.Parameter(torch.ones(2))
    optimizer = optimizer([*network.parameters(), unused], **options)

    def closure():
        optimizer.zero_grad()
        loss = network(inputs).sin().mean()
        loss.backward()
        return loss

    for _ in range(20):
        if options is SEARCH:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [weight.detach() for weight in [*network.parameters(), unused]]


@pytest.mark.parametrize(("name", "options"), [("Adam", ADAM), ("LBFGS", SEARCH)])
def test_weights_are_equal_bit_by_bit(name, options):
    ours = trained(getattr(optimizers, name), options)
    theirs = trained(getattr(torch.optim, name), options)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
