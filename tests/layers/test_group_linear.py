"""One Linear per class at once equals the loop over them, in values and gradients."""

import pytest
import torch
from torch import nn

from frcnn_lite.layers.group_linear import GroupLinear, class_to_group

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
SIZES = [(3, 0, 5), (1, 1, 1), (0, 7), (4,), (2, 2, 2), (1, 0, 0), (2, 2, 0, 0, 3), (1,) * 12]


def loop(linears, x, sizes):
    """The two loops that the layer replaces."""
    rows, count = [], 0
    for i, n in enumerate(sizes):
        for _ in range(n):
            rows.append(linears[count](x[:, i, :]))
            count += 1
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("cg", "cc", "batch"), [(1, 1, 1), (9, 4, 3), (5, 8, 2)])
def test_equals_the_loop(sizes, bias, dtype, cg, cc, batch):
    torch.manual_seed(0)
    linears = nn.ModuleList(nn.Linear(cg, cc, bias=bias) for _ in range(sum(sizes))).to(dtype)
    layer = GroupLinear.from_linears(linears, sizes)
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    x = torch.randn(batch, len(sizes), cg, dtype=dtype)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours, theirs = layer(a), loop(linears, b, sizes)
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, theirs, **close)
    seed = torch.randn_like(theirs)
    ours.backward(seed)
    theirs.backward(seed)
    torch.testing.assert_close(a.grad, b.grad, **close)
    torch.testing.assert_close(layer.weight.grad, torch.stack([m.weight.grad for m in linears]), **close)
    if bias:
        torch.testing.assert_close(layer.bias.grad, torch.stack([m.bias.grad for m in linears]), **close)


def test_one_class_a_group_is_the_equation_of_a_linear_for_each_group():
    layer = GroupLinear(6, (1,) * 6, 5, 3, bias=False)
    x = torch.randn(2, 6, 5)
    torch.testing.assert_close(layer(x), torch.einsum("bgi,gio->bgo", x, layer.weight.mT))


def test_unpacks_to_the_linears_it_came_from():
    linears = nn.ModuleList(nn.Linear(5, 3) for _ in range(4))
    for mine, theirs in zip(GroupLinear.from_linears(linears, (1, 3)).to_linears(), linears, strict=True):
        assert torch.equal(mine.weight, theirs.weight)
        assert torch.equal(mine.bias, theirs.bias)


@pytest.mark.parametrize("sizes", [(0, 0), (0,)])
def test_a_layer_without_classes_gives_an_empty_tensor(sizes):
    assert GroupLinear(len(sizes), sizes, 3, 2)(torch.zeros(4, len(sizes), 3)).shape == (4, 0, 2)


def test_class_to_group_skips_empty_groups():
    assert class_to_group((3, 0, 5)).tolist() == [0, 0, 0, 2, 2, 2, 2, 2]
    assert class_to_group((0, 0)).tolist() == []


def test_initial_weights_are_drawn_as_linear_draws_them():
    torch.manual_seed(0)
    layer = GroupLinear(4, (100, 0, 300, 100), 64, 32)
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= 1 / 8
        torch.testing.assert_close(tensor.std().item(), 1 / 8 / 3**0.5, rtol=0.02, atol=0)


def test_the_index_moves_with_the_layer_and_is_not_saved():
    layer = GroupLinear(2, (1, 2), 4, 3)
    assert set(layer.state_dict()) == {"weight", "bias"}
    assert {name for name, _ in layer.named_buffers()} == {"class_group"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: GroupLinear(2, (1, 2, 3), 4, 4), r"`nclasses_per_group` must be 2 numbers.* got 3: \(1, 2, 3\)"),
        (lambda: GroupLinear(2, (1, -1), 4, 4), "`nclasses_per_group` must be 2 numbers of classes, 0 or more"),
        (lambda: GroupLinear(0, (), 4, 4), "`nclasses_per_group` must be 0 numbers"),
        (lambda: GroupLinear(1, (1,), 0, 4), "must be 1 or more, got 0 and 4"),
        (lambda: GroupLinear(2, (1, 2), 4, 4)(torch.zeros(1, 2, 5)), r"`x` must be \(B, 2, 4\), got \(1, 2, 5\)"),
        (
            lambda: GroupLinear.from_linears([nn.Linear(2, 2)] * 3, (1, 1)),
            r"`nclasses_per_group` must be sizes that sum to 3, the number of Linears, got \(1, 1\) = 2",
        ),
        (lambda: GroupLinear.from_linears([], ()), "must be sizes that sum to 0"),
        (
            lambda: GroupLinear.from_linears([nn.Linear(2, 2), nn.Linear(3, 2)], (1, 1)),
            r"`linears` must have one \(in_features, out_features, bias\), got \[\(2, 2, True\), \(3, 2, True\)\]",
        ),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
