"""PReLU out of two ReLUs: equal bit for bit, but for the gradient at zero."""

import pytest
import torch
from torch import nn

from course.lessons.nb32.prelu import TwoReluPReLU, rewrite_prelu


@pytest.mark.parametrize("shape", [(5,), (2, 4), (2, 4, 5), (2, 4, 5, 6)])
@pytest.mark.parametrize("slopes", [1, 4])
def test_prelu_of_two_relus_is_equal_bit_for_bit(shape, slopes):
    if len(shape) == 1 and slopes > 1:
        pytest.skip("one axis has no channels")
    torch.manual_seed(0)
    prelu, x = nn.PReLU(slopes), torch.randn(shape, requires_grad=True)
    nn.init.normal_(prelu.weight)
    two = rewrite_prelu(prelu)
    assert isinstance(two, TwoReluPReLU) and torch.equal(two(x), prelu(x))
    for one, other in zip(
        torch.autograd.grad(two(x).square().sum(), [x, two.weight]),
        torch.autograd.grad(prelu(x).square().sum(), [x, prelu.weight]),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=1e-5)


def test_the_gradient_at_zero_differs():
    x, prelu = torch.zeros(1, requires_grad=True), nn.PReLU()
    assert torch.autograd.grad(prelu(x), x)[0] == 0.25
    assert torch.autograd.grad(rewrite_prelu(prelu)(x), x)[0] == 0


def test_shared_modules_stay_shared_and_weights_load():
    shared = nn.PReLU(4)
    net = nn.Sequential(shared, nn.Conv2d(4, 4, 1), shared)
    changed = rewrite_prelu(net)
    assert changed[0] is changed[2] and not any(isinstance(module, nn.PReLU) for module in changed.modules())
    changed.load_state_dict(net.state_dict())
    assert changed[0].weight is not shared.weight
