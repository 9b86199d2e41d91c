import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frcnn_lite.layers import (
    Bottleneck,
    BottleneckConfig,
    ChannelAttention,
    GroupedBottleneck,
    GroupFeatures,
    SerialGroupFeatures,
    SpatialAttention,
    pack_serial_blocks,
    pack_state_dicts,
    unpack,
    unpack_state_dict,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def trained_blocks(config, groups, dtype=torch.float64):
    """Blocks whose BatchNorm is not in its initial state: affine pairs and running statistics drawn at random."""
    torch.manual_seed(groups)
    blocks = [Bottleneck(config).to(dtype) for _ in range(groups)]
    for block in blocks:
        for name, tensor in block.state_dict().items():
            if "bn" in name or "downsample.1" in name:
                if tensor.ndim:
                    tensor.uniform_(0.5, 1.5)
                else:
                    tensor.fill_(3)
    return blocks


def loop(blocks, x, shared_input):
    inputs = [x] * len(blocks) if shared_input else x.chunk(len(blocks), dim=1)
    return torch.cat([block(part) for block, part in zip(blocks, inputs, strict=True)], dim=1)


@st.composite
def packings(draw):
    cin, mid, stride = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    cout = draw(st.sampled_from([cin, cin + 2]))
    downsample = stride != 1 or cin != cout or draw(st.booleans())
    config = BottleneckConfig(cin, mid, cout, stride, downsample, attention=draw(st.booleans()), reduction=1)
    return config, draw(st.integers(1, 5)), draw(st.booleans()), draw(st.sampled_from(list(TOLERANCE)))


@given(packings(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_grouped_equals_the_loop(case, training):
    config, groups, shared_input, dtype = case
    blocks = [block.train(training) for block in trained_blocks(config, groups, dtype)]
    grouped = pack_serial_blocks(blocks, shared_input)
    assert grouped.training is training
    x = torch.randn(3, grouped.in_channels, 5, 6, dtype=dtype)
    x_loop, x_grouped = x.clone().requires_grad_(), x.clone().requires_grad_()
    out_loop, out_grouped = loop(blocks, x_loop, shared_input), grouped(x_grouped)
    # float32 leaves the last digits of a sum open; gradients through BatchNorm add sums of both signs
    close = {"rtol": TOLERANCE[dtype], "atol": 100 * TOLERANCE[dtype]}
    torch.testing.assert_close(out_grouped, out_loop, **close)

    seed = torch.randn_like(out_loop)
    out_loop.backward(seed)
    out_grouped.backward(seed)
    torch.testing.assert_close(x_grouped.grad, x_loop.grad, **close)
    gradients = pack_state_dicts([{name: p.grad for name, p in block.named_parameters()} for block in blocks])
    for name, parameter in grouped.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], **close, msg=lambda m, n=name: f"{n}: {m}")
    # train mode moved the running statistics of both in the same way
    states = pack_state_dicts([block.state_dict() for block in blocks])
    for name, value in grouped.state_dict().items():
        torch.testing.assert_close(value, states[name], **close)


@given(packings())
@settings(max_examples=20, deadline=None)
def test_unpack_is_the_exact_reverse(case):
    config, groups, shared_input, dtype = case
    blocks = trained_blocks(config, groups, dtype)
    back = unpack(pack_serial_blocks(blocks, shared_input))
    for block, again in zip(blocks, back, strict=True):
        assert block.state_dict().keys() == again.state_dict().keys()
        assert all(
            torch.equal(a, b) for a, b in zip(block.state_dict().values(), again.state_dict().values(), strict=True)
        )


def test_unpacked_blocks_own_their_weights():
    grouped = GroupedBottleneck(2, BottleneckConfig(4, 2, 4))
    before = grouped.conv1.weight.clone()
    with torch.no_grad():
        unpack(grouped)[0].conv1.weight.zero_()
    assert torch.equal(grouped.conv1.weight, before)


def test_state_dicts_convert_both_ways():
    state = GroupedBottleneck(3, BottleneckConfig(4, 2, 4, downsample=True)).state_dict()
    again = pack_state_dicts(unpack_state_dict(state, 3))
    assert state.keys() == again.keys()
    assert all(torch.equal(state[key], again[key]) for key in state)


def test_the_posts_sizes():
    grouped = GroupedBottleneck(12, BottleneckConfig(512, 256, 512))
    assert grouped.conv1.groups == 1
    assert grouped.bn2.num_features == 3072
    assert grouped.bn3.num_features == 6144
    serial = sum(p.numel() for p in Bottleneck(grouped.config).parameters())
    assert sum(p.numel() for p in grouped.parameters()) == 12 * serial


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_chain_of_the_post_in_small(attention, training):
    serial = SerialGroupFeatures(24, groups=12, group_channels=16, attention=attention).double().train(training)
    grouped = GroupFeatures.from_serial(serial)
    x = torch.randn(2, 24, 7, 7, dtype=torch.float64)
    out = grouped(x)
    assert out.shape == (2, 12, 16)
    torch.testing.assert_close(out, serial(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(grouped.to_serial()(x), serial(x), rtol=1e-10, atol=1e-10)


@given(st.integers(1, 4), st.integers(1, 6), st.sampled_from([1, 3, 7]))
@settings(max_examples=15, deadline=None)
def test_grouped_attention_equals_attention_of_each_group(groups, channels, kernel_size):
    x = torch.randn(2, groups * channels, 4, 5, dtype=torch.float64)
    for make in (lambda g: ChannelAttention(channels, 1, g), lambda g: SpatialAttention(kernel_size, g)):
        serial = [make(1).double() for _ in range(groups)]
        grouped = make(groups).double()
        grouped.load_state_dict(pack_state_dicts([module.state_dict() for module in serial]))
        each = [(m(part) * part) for m, part in zip(serial, x.chunk(groups, 1), strict=True)]
        torch.testing.assert_close(grouped(x) * x, torch.cat(each, dim=1), rtol=1e-10, atol=1e-10)


def _mixed_counts():
    blocks = trained_blocks(BottleneckConfig(4, 2, 4, momentum=None), 2)
    blocks[1].bn1.num_batches_tracked.fill_(9)
    return pack_serial_blocks(blocks)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pack_serial_blocks([]), "blocks: expected at least one"),
        (
            lambda: pack_serial_blocks([Bottleneck(BottleneckConfig(4, 2, 4)), Bottleneck(BottleneckConfig(4, 4, 4))]),
            "blocks: expected all built alike",
        ),
        (
            lambda: pack_serial_blocks(
                [Bottleneck(BottleneckConfig(4, 2, 4)), Bottleneck(BottleneckConfig(4, 2, 4)).eval()]
            ),
            "blocks: expected all in one mode",
        ),
        (_mixed_counts, "blocks: expected equal num_batches_tracked"),
        (lambda: pack_state_dicts([{"a": torch.ones(1)}, {"b": torch.ones(1)}]), r"got \['a', 'b'\] in only one of 0"),
        (
            lambda: unpack_state_dict({"w": torch.ones(10, 2)}, 3),
            "groups: expected a divisor of 10, the rows of w, got 3",
        ),
        (lambda: BottleneckConfig(4, 2, 8), "downsample: expected True"),
        (lambda: GroupedBottleneck(0, BottleneckConfig(4, 2, 4)), "groups: expected 1 or more, got 0"),
        (
            lambda: GroupedBottleneck(3, BottleneckConfig(4, 2, 4))(torch.zeros(1, 12, 5, 5)),
            r"x: expected \(B, 4, H, W\), one input for all 3 groups, got \(1, 12, 5, 5\)",
        ),
        (
            lambda: GroupedBottleneck(3, BottleneckConfig(4, 2, 4), shared_input=False)(torch.zeros(1, 4, 5, 5)),
            r"x: expected \(B, 12, H, W\), 3 groups, got \(1, 4, 5, 5\)",
        ),
        (lambda: Bottleneck(BottleneckConfig(4, 2, 4))(torch.zeros(1, 3, 5, 5)), r"x: expected \(B, 4, H, W\), got"),
        (lambda: ChannelAttention(8, 16), "reduction: expected 1..8, got 16"),
        (lambda: SpatialAttention(4), "kernel_size: expected an odd number"),
        (lambda: GroupFeatures(8, 2, 5), "group_channels: expected an even number"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
