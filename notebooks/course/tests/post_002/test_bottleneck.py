"""A bottleneck, and `groups` of them in one module."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course.kit.post_002.bottleneck import Bottleneck, BottleneckConfig

CONFIGS = [
    BottleneckConfig(4, 2, 4),
    BottleneckConfig(3, 5, 3, eps=1e-3, momentum=None),
    BottleneckConfig(4, 2, 6, stride=2, downsample=True),
    BottleneckConfig(1, 1, 1, downsample=True),
]


def trained(block):
    """The same block with BatchNorm out of its initial state: affine pairs and running statistics drawn at random."""
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                tensor.uniform_(0.5, 1.5)
    return block


def by_hand(block, x):
    """What one block computes in eval mode, written with functions."""

    def norm(y, bn):
        return F.batch_norm(y, bn.running_mean, bn.running_var, bn.weight, bn.bias, eps=block.config.eps)

    y = norm(F.conv2d(x, block.conv1.weight), block.bn1).relu()
    y = norm(F.conv2d(y, block.conv2.weight, stride=block.config.stride, padding=1), block.bn2).relu()
    y = norm(F.conv2d(y, block.conv3.weight), block.bn3)
    if block.config.downsample:
        conv, bn = block.downsample
        x = norm(F.conv2d(x, conv.weight, stride=block.config.stride), bn)
    return (y + x).relu()


def part(grouped, k):
    """Block k of a grouped module: its share of every tensor, cut out by hand."""
    one = Bottleneck(grouped.config).double().train(grouped.training)
    own = grouped.state_dict()
    state = {
        name: own[name][k * len(value) : (k + 1) * len(value)] if value.ndim else own[name].clone()
        for name, value in one.state_dict().items()
    }
    one.load_state_dict(state)
    return one


@pytest.mark.parametrize("config", CONFIGS)
def test_one_block_is_the_three_convolutions_around_a_shortcut(config):
    torch.manual_seed(0)
    block = trained(Bottleneck(config).double()).eval()
    x = torch.randn(2, config.in_channels, 6, 5, dtype=torch.float64)
    torch.testing.assert_close(block(x), by_hand(block, x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("shared_input", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_each_group_is_a_block_of_its_own(config, shared_input, training):
    torch.manual_seed(1)
    groups = 3
    grouped = trained(Bottleneck(config, groups, shared_input).double()).train(training)
    blocks = [part(grouped, k) for k in range(groups)]
    x = torch.randn(4, grouped.in_channels, 6, 5, dtype=torch.float64)
    inputs = [x] * groups if shared_input else x.chunk(groups, dim=1)
    together = torch.cat([block(own) for block, own in zip(blocks, inputs, strict=True)], dim=1)
    torch.testing.assert_close(grouped(x), together, rtol=1e-10, atol=1e-10)


def test_the_shortcut_of_a_shared_input_reaches_every_group():
    grouped = Bottleneck(BottleneckConfig(4, 2, 4), groups=3)
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(grouped.add_shortcut(torch.zeros(2, 12, 5, 5), x), torch.cat([x] * 3, dim=1))


def test_sizes_of_twelve_blocks():
    config = BottleneckConfig(512, 256, 512)
    with torch.device("meta"):
        grouped, one = Bottleneck(config, groups=12), Bottleneck(config)
    assert (grouped.conv1.groups, grouped.conv2.groups, grouped.conv3.groups) == (1, 12, 12)
    assert (grouped.bn2.num_features, grouped.bn3.num_features) == (3072, 6144)
    assert sum(p.numel() for p in grouped.parameters()) == 12 * sum(p.numel() for p in one.parameters())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: BottleneckConfig(4, 2, 8), r"`downsample` must be True, .* 8 channels at stride 1, got False"),
        (lambda: BottleneckConfig(4, 2, 4, stride=2), "`downsample` must be True"),
        (lambda: Bottleneck(BottleneckConfig(4, 2, 4), groups=0), "`groups` must be 1 or more, got 0"),
        (
            lambda: Bottleneck(BottleneckConfig(4, 2, 4))(torch.zeros(1, 3, 5, 5)),
            r"`x` must be \(B, 4, H, W\), got \(1, 3, 5, 5\)",
        ),
        (
            lambda: Bottleneck(BottleneckConfig(4, 2, 4), groups=3)(torch.zeros(1, 12, 5, 5)),
            r"`x` must be \(B, 4, H, W\), one input for all 3 groups, got \(1, 12, 5, 5\)",
        ),
        (
            lambda: Bottleneck(BottleneckConfig(4, 2, 4), groups=3, shared_input=False)(torch.zeros(1, 4, 5, 5)),
            r"`x` must be \(B, 12, H, W\), 3 groups, got \(1, 4, 5, 5\)",
        ),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
