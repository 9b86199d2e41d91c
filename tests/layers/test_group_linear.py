import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from frcnn_lite.layers import (
    ClassHead,
    ClassHeadConfig,
    GraphAttention,
    GroupDividedLinear,
    GroupedResidualLinear,
    GroupLinear,
    ResidualLinearBlock,
    SerialClassHead,
    class_to_group,
)
from frcnn_lite.layers.class_head import stack_state_dict, unstack_state_dict
from frcnn_lite.layers.group_product import product_by_class, product_by_run
from frcnn_lite.layers.measure import peak_bytes

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
RAGGED = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


def loop(linears, x, sizes):
    """The post's two loops."""
    rows, count = [], 0
    for i, n in enumerate(sizes):
        for _ in range(n):
            rows.append(linears[count](x[:, i, :]))
            count += 1
    return torch.stack(rows, dim=1)


def by_class(layer):
    return lambda x, **own: product_by_class(x, *parameters(layer, own), layer.class_group)


def by_run(layer):
    return lambda x, **own: product_by_run(x, *parameters(layer, own), layer.runs)


def parameters(layer, own):
    return own.get("weight", layer.weight), own.get("bias", layer.bias)


def assert_same_step(layer, linears, x, reference, dtype):
    """Outputs and all gradients of `layer(x)` equal those of `reference(x)` through `linears`."""
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours, theirs = layer(a), reference(b)
    torch.testing.assert_close(ours, theirs, **close)
    seed = torch.randn_like(theirs)
    ours.backward(seed)
    theirs.backward(seed)
    torch.testing.assert_close(a.grad, b.grad, **close)
    torch.testing.assert_close(layer.weight.grad, torch.stack([m.weight.grad for m in linears]), **close)
    if layer.bias is not None:
        torch.testing.assert_close(layer.bias.grad, torch.stack([m.bias.grad for m in linears]), **close)


@given(RAGGED, st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.sampled_from(list(TOLERANCE)))
@settings(max_examples=60, deadline=None)
def test_group_linear_equals_the_loop(sizes, cg, cc, batch, bias, dtype):
    linears = nn.ModuleList(nn.Linear(cg, cc, bias=bias) for _ in range(sum(sizes))).to(dtype)
    layer = GroupLinear.from_linears(linears, sizes)
    x = torch.randn(batch, len(sizes), cg, dtype=dtype)
    assert_same_step(layer, linears, x, lambda v: loop(linears, v, sizes), dtype)


@pytest.mark.parametrize("sizes", [(3, 0, 5), (1, 1, 1), (0, 7), (4,), (2, 2, 2), (1, 0, 0), (2, 2, 0, 0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_every_way_of_computing_gives_the_same(sizes, bias):
    layer = GroupLinear(len(sizes), sizes, 6, 4, bias).double()
    x = torch.randn(5, len(sizes), 6, dtype=torch.float64)
    expected = loop(layer.to_linears(), x, sizes)
    for way in (layer, by_class(layer), by_run(layer)):
        torch.testing.assert_close(way(x), expected, rtol=1e-10, atol=1e-10)


def test_large_ragged_input_is_not_repeated():
    sizes, batch, channels = (30, 2, 0, 8), 64, 128
    layer = GroupLinear(len(sizes), sizes, channels, 8)
    x = torch.randn(batch, len(sizes), channels)
    output = batch * 40 * 8 * 4
    repeated = batch * 40 * channels * 4
    with torch.no_grad():
        assert peak_bytes(lambda: layer(x)) < 4 * output < repeated
        assert peak_bytes(lambda: by_class(layer)(x)) >= repeated


@pytest.mark.parametrize("sizes", [(0, 0), (0,)])
def test_a_layer_without_classes_gives_an_empty_tensor(sizes):
    assert GroupLinear(len(sizes), sizes, 3, 2)(torch.zeros(4, len(sizes), 3)).shape == (4, 0, 2)


def test_class_to_group_skips_empty_groups():
    assert class_to_group((3, 0, 5)).tolist() == [0, 0, 0, 2, 2, 2, 2, 2]


def test_initial_weights_are_drawn_as_linear_draws_them():
    layer = GroupLinear(4, (100, 0, 300, 100), 64, 32)
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= 1 / 8
        torch.testing.assert_close(tensor.std().item(), 1 / 8 / 3**0.5, rtol=0.02, atol=0)


@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 5), st.booleans(), st.sampled_from(list(TOLERANCE)))
@settings(max_examples=30, deadline=None)
def test_group_divided_linear_equals_the_loop_and_the_equation(groups, fan_in, out, bias, dtype):
    linears = nn.ModuleList(nn.Linear(fan_in, out, bias=bias) for _ in range(groups)).to(dtype)
    layer = GroupDividedLinear.from_linears(linears)
    x = torch.randn(3, groups, fan_in, dtype=dtype)
    assert_same_step(layer, linears, x, lambda v: loop(linears, v, [1] * groups), dtype)
    by_equation = torch.einsum("bgi,gio->bgo", x, layer.weight.mT) + (0 if layer.bias is None else layer.bias)
    torch.testing.assert_close(layer(x), by_equation, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def test_both_unpack_to_the_linears_they_came_from():
    linears = nn.ModuleList(nn.Linear(5, 3) for _ in range(4))
    for layer in (GroupLinear.from_linears(linears, (1, 3)), GroupDividedLinear.from_linears(linears)):
        for mine, theirs in zip(layer.to_linears(), linears, strict=True):
            assert torch.equal(mine.weight, theirs.weight)
            assert torch.equal(mine.bias, theirs.bias)


@pytest.mark.parametrize("way", [by_class, by_run])
@pytest.mark.parametrize("bias", [True, False])
def test_first_and_second_derivatives(way, bias):
    layer = GroupLinear(4, (2, 0, 1, 1), 4, 2, bias).double()
    names = [name for name, _ in layer.named_parameters()]
    x = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)

    def call(x, *tensors):
        return way(layer)(x, **dict(zip(names, tensors, strict=True)))

    inputs = (x, *(p.detach().clone().requires_grad_() for p in layer.parameters()))
    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_gradients_where_only_some_are_wanted(way):
    layer = GroupLinear(3, (3, 0, 5), 4, 2).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    way(layer)(x).sum().backward()
    assert layer.weight.grad is not None
    frozen = x.clone().requires_grad_()
    (way(layer.requires_grad_(False))(frozen) ** 2).sum().backward()
    expected = x.clone().requires_grad_()
    (loop(layer.to_linears(), expected, (3, 0, 5)) ** 2).sum().backward()
    torch.testing.assert_close(frozen.grad, expected.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_a_gradient_penalty_on_the_input_alone(way):
    layer = GroupLinear(3, (3, 0, 5), 4, 2).double()
    linears = layer.to_linears()
    penalties = []
    for call in (way(layer), lambda x: loop(linears, x, (3, 0, 5))):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(call(x).square().sum(), x, create_graph=True)
        gradient.square().sum().backward()
        penalties.append(x.grad)
    torch.testing.assert_close(*penalties, rtol=1e-10, atol=1e-10)
    expected = torch.stack([m.weight.grad for m in linears])
    torch.testing.assert_close(layer.weight.grad, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_not_a_number_stays_in_its_group(way):
    layer = GroupLinear(3, (3, 0, 5), 4, 2)
    x = torch.randn(2, 3, 4)
    x[0, 0] = float("nan")
    x.requires_grad_()
    out = way(layer)(x)
    assert out[0, :3].isnan().all()
    assert not out[:, 3:].isnan().any()
    seed = torch.ones_like(out)
    seed[1, 7] = float("inf")
    out.backward(seed)
    assert x.grad[:, 0].isfinite().all()


@pytest.mark.parametrize("way", [by_class, by_run])
def test_works_under_torch_func(way):
    layer = GroupLinear(3, (3, 0, 5), 4, 2).double()
    x = torch.randn(5, 2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(torch.func.vmap(way(layer))(x), torch.stack([layer(part) for part in x]))


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
    stacked = {key: torch.stack([m.state_dict()[key] for m in serial]) for key in serial[0].state_dict()}
    grouped.load_state_dict(stacked)
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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: GroupLinear(2, (1, 2, 3), 4, 4), r"nclasses_per_group: expected 2 numbers.* got 3: \(1, 2, 3\)"),
        (lambda: GroupLinear(2, (1, -1), 4, 4), "nclasses_per_group: expected 2 numbers of classes, 0 or more"),
        (lambda: GroupLinear(1, (1,), 0, 4), "group_channels: expected 1 or more, got 0"),
        (lambda: GroupLinear(2, (1, 2), 4, 4)(torch.zeros(1, 2, 5)), r"x: expected \(B, 2, 4\), got \(1, 2, 5\)"),
        (
            lambda: GroupLinear.from_linears([nn.Linear(2, 2)] * 3, (1, 1)),
            r"expected sizes that sum to 3, the number of Linears, got \(1, 1\) = 2",
        ),
        (
            lambda: GroupLinear.from_linears([nn.Linear(2, 2), nn.Linear(3, 2)], (1, 1)),
            "linears: expected one .in_features, out_features, bias. for all",
        ),
        (lambda: GroupDividedLinear(0, 2, 2), "n_groups: expected 1 or more, got 0"),
        (lambda: GroupDividedLinear(2, 3, 2)(torch.zeros(1, 3, 3)), r"x: expected \(B, 2, 3\), got \(1, 3, 3\)"),
        (lambda: GroupDividedLinear.from_linears([]), "linears: expected at least one"),
        (lambda: ResidualLinearBlock(5, 2, 5), "reduction: expected a divisor of in_channels .5., got 2"),
        (lambda: SerialClassHead(ClassHeadConfig((1, 2), 4, 4))(torch.zeros(1, 3, 4)), r"x: expected \(B, 2, 4\)"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
