"""`GroupLinear` and `FastGroupLinear` can take each other's place."""

import pytest
import torch

from frcnn_lite.layers import FastGroupLinear, GroupLinear

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(3, 0, 5), (7,) * 4 + (6,) * 2, (1,) * 8, (4,)], ids=str)
@pytest.mark.parametrize(("channels", "batch"), [(16, 2), (512, 32)])  # below and above the size that is repeated
def test_one_state_dict_and_equal_outputs_and_gradients(dtype, bias, sizes, channels, batch):
    torch.manual_seed(0)
    plain, fast = (kind(len(sizes), sizes, channels, 5, bias).to(dtype) for kind in (GroupLinear, FastGroupLinear))
    assert plain.load_state_dict(fast.state_dict()) == fast.load_state_dict(plain.state_dict())
    assert plain.state_dict().keys() == fast.state_dict().keys()
    assert repr(plain).removeprefix("GroupLinear") == repr(fast).removeprefix("FastGroupLinear")
    x = torch.randn(batch, len(sizes), channels, dtype=dtype)
    seed = torch.randn(batch, sum(sizes), 5, dtype=dtype)
    results = []
    for layer in (plain, fast):
        own = x.clone().requires_grad_()
        out = layer(own)
        out.backward(seed)
        results.append([out.detach(), own.grad, *(p.grad for p in layer.parameters())])
    for one, other in zip(*results, strict=True):
        scale = one.abs().max().item()
        torch.testing.assert_close(other, one, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def test_the_same_seed_draws_the_same_weights():
    layers = []
    for kind in (GroupLinear, FastGroupLinear):
        torch.manual_seed(3)
        layers.append(kind(3, (3, 0, 5), 6, 4))
    assert all(torch.equal(one, other) for one, other in zip(*(each.parameters() for each in layers), strict=True))
