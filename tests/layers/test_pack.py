"""Serial blocks packed into a grouped module compute the same, in training too, and come back bit for bit."""

import pytest
import torch
from torch import nn

from frcnn_lite.layers.pack import pack_serial_blocks, pack_state_dicts, unpack, unpack_state_dict

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def branch(groups=1, mid=3, out=4, bias=True, momentum=0.1, shared=True):
    """`groups` small branches side by side: two convolutions and two BatchNorms, two channels in for each."""
    read = 2 if shared else 2 * groups
    return nn.Sequential(
        nn.Conv2d(read, groups * mid, 1, bias=bias, groups=1 if shared else groups),
        nn.BatchNorm2d(groups * mid, momentum=momentum),
        nn.ReLU(),
        nn.Conv2d(groups * mid, groups * out, 3, padding=1, bias=bias, groups=groups),
        nn.BatchNorm2d(groups * out, affine=bias, momentum=momentum),
    )


def trained(count, dtype=torch.float64, **settings):
    """Branches whose BatchNorm is not in its initial state."""
    torch.manual_seed(count)
    blocks = [branch(**settings).to(dtype) for _ in range(count)]
    for block in blocks:
        for norm in (block[1], block[4]):
            norm.running_mean.uniform_(0.5, 1.5), norm.running_var.uniform_(0.5, 1.5)
            norm.num_batches_tracked.fill_(3)
    return blocks


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("settings", [{}, {"bias": False, "mid": 1}, {"momentum": None, "out": 7}])
def test_packed_equals_the_loop(dtype, training, shared, groups, settings):
    blocks = [block.train(training) for block in trained(groups, dtype, **settings)]
    packed = pack_serial_blocks(blocks, branch(groups, shared=shared, **settings))
    assert packed.training is training and packed[0].weight.dtype == dtype
    x = torch.randn(3, 2 if shared else 2 * groups, 5, 6, dtype=dtype)
    x_loop, x_packed = x.clone().requires_grad_(), x.clone().requires_grad_()
    inputs = [x_loop] * groups if shared else x_loop.chunk(groups, dim=1)
    loop = torch.cat([block(own) for block, own in zip(blocks, inputs, strict=True)], dim=1)
    out = packed(x_packed)
    # float32 leaves the last digits of a sum open; gradients through BatchNorm add sums of both signs
    close = {"rtol": TOLERANCE[dtype], "atol": 100 * TOLERANCE[dtype]}
    torch.testing.assert_close(out, loop, **close)

    seed = torch.randn_like(loop)
    loop.backward(seed)
    out.backward(seed)
    torch.testing.assert_close(x_packed.grad, x_loop.grad, **close)
    gradients = pack_state_dicts([{name: p.grad for name, p in block.named_parameters()} for block in blocks])
    for name, parameter in packed.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], **close, msg=lambda m, n=name: f"{n}: {m}")
    # train mode moved the running statistics of both in the same way
    states = pack_state_dicts([block.state_dict() for block in blocks])
    for name, value in packed.state_dict().items():
        torch.testing.assert_close(value, states[name], **close)


@pytest.mark.parametrize("training", [True, False])
def test_unpack_is_the_exact_reverse(training):
    blocks = [block.train(training) for block in trained(4)]
    like = branch()
    back = unpack(pack_serial_blocks(blocks, branch(4)), like, 4)
    for block, again in zip(blocks, back, strict=True):
        assert again is not like and again.training is training
        assert block.state_dict().keys() == again.state_dict().keys()
        for one, other in zip(block.state_dict().values(), again.state_dict().values(), strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)


def test_both_own_their_weights():
    blocks = trained(2)
    packed = pack_serial_blocks(blocks, branch(2))
    before = packed[0].weight.clone()
    with torch.no_grad():
        blocks[0][0].weight.zero_()
        unpack(packed, branch(), 2)[0][0].weight.zero_()
    assert torch.equal(packed[0].weight, before)


def test_state_dicts_convert_both_ways():
    state = branch(3).state_dict()
    again = pack_state_dicts(unpack_state_dict(state, 3))
    assert state.keys() == again.keys()
    assert all(torch.equal(state[key], again[key]) for key in state)


def test_the_largest_count_of_batches_is_kept():
    states = [{"n": torch.tensor(3)}, {"n": torch.tensor(9)}]
    assert pack_state_dicts(states)["n"].item() == 9


def mixed_counts():
    blocks = trained(2, momentum=None)
    blocks[1][1].num_batches_tracked.fill_(9)
    return pack_serial_blocks(blocks, branch(2, momentum=None))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pack_serial_blocks([], branch()), "`blocks` must be at least one module, got none"),
        (lambda: pack_serial_blocks([branch(), branch(mid=1)], branch(2)), "(?s)`blocks` must all be built alike"),
        (lambda: pack_serial_blocks([branch(), branch(momentum=0.2)], branch(2)), "(?s)`blocks` must all be built"),
        (
            lambda: pack_serial_blocks([branch(), branch().eval()], branch(2)),
            "`blocks` must all be in one mode, got training=True at 0, not so at 1",
        ),
        (mixed_counts, "`blocks` must have equal num_batches_tracked where momentum is None"),
        (lambda: pack_state_dicts([]), "`states` must be at least one state_dict, got none"),
        (lambda: pack_state_dicts([{"a": torch.ones(1)}, {"b": torch.ones(1)}]), r"got \['a', 'b'\] in only one of 0"),
        (
            lambda: pack_state_dicts([{"a": torch.ones(2, 3)}, {"a": torch.ones(4, 3)}]),
            r"`states` must have one shape for a, got \[\(2, 3\), \(4, 3\)\]",
        ),
        (
            lambda: unpack_state_dict({"w": torch.ones(10, 2)}, 3),
            "`groups` must divide 10, the rows of w, got 3",
        ),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_grouped_module_of_a_different_size_is_refused():
    with pytest.raises(RuntimeError, match="size mismatch"):
        pack_serial_blocks(trained(2), branch(3))
