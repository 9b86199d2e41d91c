"""Lazy modules on virtual GPUs: moved, made there, loaded and taken back before they have a shape."""

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("gpus")
TWO = torch.device("cuda:2")


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LazyLinear(3).cuda(2),
        lambda: nn.LazyLinear(3).to("cuda:2"),
        lambda: nn.LazyLinear(3, device="cuda:2"),
        lambda: nn.LazyLinear(3).cuda(1).cuda(2),
        lambda: nn.LazyLinear(3).cuda(2).float(),
    ],
)
def test_the_first_forward_makes_its_parameters_there(make):
    module = make()
    weight = module.weight
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    assert module.weight.device == TWO and torch.cuda.memory_allocated(2) <= 512, "no shape, no memory but the bias's"
    assert module(torch.ones(2, 5, device=TWO)).device == TWO
    assert module.weight is weight and isinstance(weight, nn.Parameter) and weight.shape == (3, 5)
    module(torch.ones(2, 5, device=TWO)).sum().backward()
    before = weight.detach().clone()
    optimizer.step()
    assert not weight.equal(before), "the optimizer holds the parameter that materialized"


def test_buffers_keep_what_they_are():
    norm = nn.LazyBatchNorm1d().cuda(1)
    norm(torch.randn(4, 3, device="cuda:1"))
    assert norm.running_mean.device == torch.device("cuda:1") and not norm.running_mean.requires_grad
    assert set(norm.state_dict()) == {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}


def test_dtype_and_way_back():
    module = nn.LazyLinear(2).cuda().to(torch.float64).cpu()
    assert module(torch.ones(1, 3, dtype=torch.float64)).device.type == "cpu"
    assert type(module.weight) is nn.Parameter


def test_a_state_dict_gives_the_shape():
    trained = nn.Linear(4, 2).cuda(1)
    module = nn.LazyLinear(2).cuda(2)
    module.load_state_dict(trained.state_dict())
    assert module.weight.device == TWO and module.weight.cpu().equal(trained.weight.cpu())


def test_other_uses_are_refused_as_ever():
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        nn.LazyLinear(2).cuda().weight.sum()
