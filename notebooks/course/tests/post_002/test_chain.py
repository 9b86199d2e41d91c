"""The network of the post: with loops and without, in eval mode and in training, alone and on two devices."""

import pytest
import torch
from torch import nn

import vgpu
from course.kit.post_002 import (
    AttentionBottleneck,
    ChannelAttention,
    ClassHead,
    ClassHeadConfig,
    GraphAttention,
    GroupedResidualLinear,
    GroupFeatures,
    ResidualLinearBlock,
    SerialClassHead,
    SerialGroupFeatures,
    SpatialAttention,
)
from course.kit.post_002.bottleneck import BottleneckConfig
from course.kit.post_002.class_head import stack_state_dict, unstack_state_dict
from frcnn_lite.layers import pack_serial_blocks, pack_state_dicts


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("channels", [1, 6])
@pytest.mark.parametrize("kernel_size", [1, 3, 7])
def test_grouped_attention_equals_attention_of_each_group(groups, channels, kernel_size):
    x = torch.randn(2, groups * channels, 4, 5, dtype=torch.float64)
    for make in (lambda g: ChannelAttention(channels, 1, g), lambda g: SpatialAttention(kernel_size, g)):
        serial = [make(1).double() for _ in range(groups)]
        grouped = make(groups).double()
        grouped.load_state_dict(pack_state_dicts([module.state_dict() for module in serial]))
        each = [(m(part) * part) for m, part in zip(serial, x.chunk(groups, 1), strict=True)]
        torch.testing.assert_close(grouped(x) * x, torch.cat(each, dim=1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("config", [BottleneckConfig(6, 4, 6), BottleneckConfig(6, 4, 8, 2, True)])
@pytest.mark.parametrize("training", [True, False])
def test_bottlenecks_with_attention_pack(config, training):
    blocks = [AttentionBottleneck(config, reduction=2).double().train(training) for _ in range(3)]
    packed = pack_serial_blocks(blocks, AttentionBottleneck(config, 3, reduction=2))
    x = torch.randn(2, 6, 6, 6, dtype=torch.float64)
    loop = torch.cat([block(x) for block in blocks], dim=1)
    torch.testing.assert_close(packed(x), loop, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_features_convert_both_ways(attention, training):
    serial = SerialGroupFeatures(24, groups=12, group_channels=16, attention=attention).double().train(training)
    grouped = GroupFeatures.from_serial(serial)
    x = torch.randn(2, 24, 7, 7, dtype=torch.float64)
    out = grouped(x)
    assert out.shape == (2, 12, 16) and grouped.training is training
    torch.testing.assert_close(out, serial(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(grouped.to_serial()(x), serial(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sizes", [(3, 0, 5), (1,), (2, 2)])
def test_head_converts_both_ways_with_gradients(sizes):
    serial = SerialClassHead(ClassHeadConfig(sizes, 6, 4)).double()
    head = ClassHead.from_serial(serial)
    x = torch.randn(3, len(sizes), 6, dtype=torch.float64)
    torch.testing.assert_close(head(x), serial(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(head.to_serial()(x), serial(x), rtol=1e-10, atol=1e-10)
    head(x).square().sum().backward()
    serial(x).square().sum().backward()
    gradients = stack_state_dict({name: p.grad for name, p in serial.named_parameters()})
    for name, parameter in head.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-10, atol=1e-10)
    state = serial.state_dict()
    again = unstack_state_dict(stack_state_dict(state))
    assert state.keys() == again.keys()
    assert all(torch.equal(state[key], again[key]) for key in state)


def test_residual_blocks_change_channels():
    serial = [ResidualLinearBlock(6, 2, 5) for _ in range(3)]
    grouped = GroupedResidualLinear(3, 6, 2, 5)
    grouped.load_state_dict({key: torch.stack([m.state_dict()[key] for m in serial]) for key in serial[0].state_dict()})
    x = torch.randn(2, 3, 6)
    torch.testing.assert_close(grouped(x), torch.stack([m(x[:, k]) for k, m in enumerate(serial)], dim=1))


def test_graph_attention_is_the_papers_formula():
    gat = GraphAttention(4).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    h = x[0] @ gat.linear.weight.T
    to, frm = gat.to_score.weight[0], gat.from_score.weight[0]
    expected = torch.zeros(3, 4, dtype=torch.float64)
    for i in range(3):
        scores = torch.stack([nn.functional.leaky_relu(to @ h[i] + frm @ h[j], 0.2) for j in range(3)])
        expected[i] = x[0, i] + nn.functional.elu(sum(a * h[j] for j, a in enumerate(torch.softmax(scores, 0))))
    torch.testing.assert_close(gat(x)[0], expected)


def test_two_virtual_gpus_give_output_and_gradients_of_the_cpu():
    torch.manual_seed(0)
    chain = nn.Sequential(GroupFeatures(6, 3, 8), ClassHead(ClassHeadConfig((3, 0, 5), 8, 4))).eval()
    x = torch.randn(4, 6, 6, 6)
    expected = chain(x)
    expected.square().sum().backward()
    gradients = [p.grad.clone() for p in chain.parameters()]
    with vgpu.virtual_gpus(2):
        chain.zero_grad()
        out = nn.DataParallel(chain.cuda())(x.cuda())
        torch.testing.assert_close(out.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-5)
        out.square().sum().backward()
        for parameter, gradient in zip(chain.parameters(), gradients, strict=True):
            torch.testing.assert_close(parameter.grad.cpu(), gradient, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ChannelAttention(8, 16), "`reduction` must be 1..8, got 16"),
        (lambda: SpatialAttention(4), "`kernel_size` must be odd"),
        (lambda: GroupFeatures(8, 2, 5), "`group_channels` must be an even number"),
        (lambda: ResidualLinearBlock(5, 2, 5), "`reduction` must divide in_channels .5., got 2"),
        (lambda: SerialClassHead(ClassHeadConfig((1, 2), 4, 4))(torch.zeros(1, 3, 4)), r"`x` must be \(B, 2, 4\)"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
