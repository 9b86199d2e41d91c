"""Statements in the prose of notebook 24 that no output shows, run again."""

import pytest
import torch
from told import says
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course.kit import post_002


def test_the_first_and_the_last_filter_are_at_home():
    places = torch.arange(96).view(12, 8)  # place of filter c of branch k by `cat`
    dealt = places.T.flatten()  # what `stack`, flattened, has in each place
    assert dealt[1] == places[1, 0]
    assert (dealt == torch.arange(96)).nonzero().flatten().tolist() == [0, 95]
    assert says("24", "only the very first and the very last are at home")


def test_groups_must_divide_both_numbers():
    for channels in ((10, 12), (12, 10)):
        with pytest.raises(ValueError, match="must be divisible by groups"):
            nn.Conv2d(*channels, 1, groups=3)
    assert says("24", "`groups` must divide both numbers of channels, and PyTorch raises a `ValueError`")


def test_the_gradient_of_a_shared_input_is_a_sum_over_the_gpus():
    config = post_002.BottleneckConfig(8, 4, 8)
    block, x = post_002.Bottleneck(config, groups=12).double().eval(), torch.randn(2, 8, 5, 5, dtype=torch.float64)
    gradients = []
    for channels in (slice(None), slice(0, 48), slice(48, 96)):  # all branches, and those of each GPU
        inputs = x.clone().requires_grad_()
        block(inputs)[:, channels].square().sum().backward()
        gradients.append(inputs.grad)
    torch.testing.assert_close(gradients[1] + gradients[2], gradients[0])
    assert says("24", "each GPU has the input's gradient from its own six branches, and both have to be added up")


def test_group_norm_needs_a_group_for_each_branch():
    x = torch.randn(3, 768, 4, 4, dtype=torch.float64)
    parts = torch.cat([nn.GroupNorm(1, 64).double()(part) for part in x.chunk(12, dim=1)], dim=1)
    torch.testing.assert_close(nn.GroupNorm(12, 768).double()(x), parts)
    assert not torch.allclose(nn.GroupNorm(1, 768).double()(x), parts)
    assert says("24", "`GroupNorm(12, 768)` replaces twelve `GroupNorm(1, 64)`")


def test_both_forms_multiply_the_same_numbers():
    net, x = post_002.GroupFeatures(64, groups=12, group_channels=32).eval(), torch.randn(6, 64, 7, 7)
    counts = []
    for form in (net, net.to_serial()):
        with FlopCounterMode(display=False) as flops:
            form(x)
        counts.append((flops.get_total_flops(), sum(p.nbytes for p in form.parameters())))
    assert counts[0] == counts[1]
    assert says("24", "Both forms multiply the same numbers.")


def test_three_groups_on_two_gpus_raise():
    x, weight = torch.randn(1, 6, 4, 4), torch.randn(6, 2, 3, 3)
    with pytest.raises(RuntimeError, match="expected input"):
        F.conv2d(x.chunk(2, 1)[0], weight.chunk(2)[0], groups=1)
    assert says("24", "With six channels each GPU has three, and filters that read two, which raises.")


def test_branches_of_different_widths():
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([torch.zeros(4, 2, 3, 3), torch.zeros(4, 3, 3, 3)])
    convs = [nn.Conv2d(2, filters, 3, bias=False) for filters in (3, 5)]
    x = torch.randn(1, 4, 6, 6)
    loop = torch.cat([conv(part) for conv, part in zip(convs, x.chunk(2, 1), strict=True)], dim=1)
    packed = nn.Conv2d(4, 8, 3, bias=False, groups=2)
    packed.load_state_dict({"weight": torch.cat([conv.weight for conv in convs])})
    assert packed(x).shape == loop.shape and not torch.allclose(packed(x), loop, atol=1e-3)
    assert says("24", "it works, and the convolution cuts the groups in the wrong places")
