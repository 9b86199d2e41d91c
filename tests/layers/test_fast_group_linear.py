"""The fast form of many Linears at once: equal to the definition in every way of computing, and light in memory."""

import pytest
import torch

from frcnn_lite.layers.fast_group_linear import FastGroupLinear, product_by_class, product_by_run

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
SIZES = [(3, 0, 5), (1, 1, 1), (0, 7), (4,), (2, 2, 2), (1, 0, 0), (2, 2, 0, 0, 3), (1,) * 12]


def definition(layer):
    """Each group's row repeated for its classes, one product a class."""

    def call(x):
        out = torch.einsum("bni,noi->bno", x[:, layer.class_group], layer.weight)
        return out if layer.bias is None else out + layer.bias

    return call


def by_class(layer):
    return lambda x, **own: product_by_class(x, *parameters(layer, own), layer.class_group)


def by_run(layer):
    return lambda x, **own: product_by_run(x, *parameters(layer, own), layer.runs)


def parameters(layer, own):
    return own.get("weight", layer.weight), own.get("bias", layer.bias)


def step(call, layer, x, seed):
    """Output, and the gradients of input, weight and bias."""
    x = x.clone().requires_grad_()
    out = call(x)
    return out.detach(), *torch.autograd.grad(out, [x, *layer.parameters()], seed)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_way_of_computing_gives_values_and_gradients_of_the_definition(sizes, bias, dtype):
    torch.manual_seed(0)
    layer = FastGroupLinear(len(sizes), sizes, 6, 4, bias).to(dtype)
    x = torch.randn(5, len(sizes), 6, dtype=dtype)
    seed = torch.randn(5, sum(sizes), 4, dtype=dtype)
    expected = step(definition(layer), layer, x, seed)
    for way in (layer, by_class(layer), by_run(layer)):
        for found, right in zip(step(way, layer, x, seed), expected, strict=True):
            torch.testing.assert_close(found, right, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def test_large_inputs_are_cut_into_runs_and_give_the_same():
    torch.manual_seed(0)
    sizes = (30, 2, 0, 8)
    layer = FastGroupLinear(4, sizes, 128, 8).double()
    x, seed = torch.randn(64, 4, 128, dtype=torch.float64), torch.randn(64, 40, 8, dtype=torch.float64)
    expected = step(definition(layer), layer, x, seed)
    for found, right in zip(step(layer, layer, x, seed), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-10)


def kept(call, x, layer):
    """Bytes that are kept for backward, each storage once, the weights not counted."""
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and tensor.is_floating_point():
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        call(x)
    return sum(storages.values())


def test_a_large_input_is_kept_once_and_not_once_a_class():
    sizes, batch, channels = (30, 2, 0, 8), 64, 128
    layer = FastGroupLinear(len(sizes), sizes, channels, 8)
    x = torch.randn(batch, len(sizes), channels, requires_grad=True)
    assert kept(layer, x, layer) == x.nbytes
    assert kept(definition(layer), x, layer) == batch * 40 * channels * 4 == 10 * x.nbytes


@pytest.mark.parametrize("way", [by_class, by_run])
@pytest.mark.parametrize("bias", [True, False])
def test_first_and_second_derivatives(way, bias):
    layer = FastGroupLinear(4, (2, 0, 1, 1), 4, 2, bias).double()
    names = [name for name, _ in layer.named_parameters()]
    x = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)

    def call(x, *tensors):
        return way(layer)(x, **dict(zip(names, tensors, strict=True)))

    inputs = (x, *(p.detach().clone().requires_grad_() for p in layer.parameters()))
    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_gradients_where_only_some_are_wanted(way):
    layer = FastGroupLinear(3, (3, 0, 5), 4, 2).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    way(layer)(x).sum().backward()
    assert layer.weight.grad is not None
    layer.requires_grad_(False)
    frozen, expected = x.clone().requires_grad_(), x.clone().requires_grad_()
    (way(layer)(frozen) ** 2).sum().backward()
    (definition(layer)(expected) ** 2).sum().backward()
    torch.testing.assert_close(frozen.grad, expected.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_a_gradient_penalty_on_the_input_alone(way):
    layer = FastGroupLinear(3, (3, 0, 5), 4, 2).double()
    start = torch.randn(2, 3, 4, dtype=torch.float64)
    penalties = []
    for call in (way(layer), definition(layer)):
        x = start.clone().requires_grad_()
        layer.zero_grad()
        (gradient,) = torch.autograd.grad(call(x).square().sum(), x, create_graph=True)
        gradient.square().sum().backward()
        penalties.append((x.grad, layer.weight.grad.clone()))
    for mine, right in zip(*penalties, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", [by_class, by_run])
def test_not_a_number_stays_in_its_group(way):
    layer = FastGroupLinear(3, (3, 0, 5), 4, 2)
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
    layer = FastGroupLinear(3, (3, 0, 5), 4, 2).double()
    x = torch.randn(5, 2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(torch.func.vmap(way(layer))(x), torch.stack([layer(part) for part in x]))


@pytest.mark.parametrize("sizes", [(0, 0), (0,)])
def test_a_layer_without_classes_gives_an_empty_tensor(sizes):
    assert FastGroupLinear(len(sizes), sizes, 3, 2)(torch.zeros(4, len(sizes), 3)).shape == (4, 0, 2)


def test_initial_weights_are_drawn_as_linear_draws_them():
    torch.manual_seed(0)
    layer = FastGroupLinear(4, (100, 0, 300, 100), 64, 32)
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= 1 / 8
        torch.testing.assert_close(tensor.std().item(), 1 / 8 / 3**0.5, rtol=0.02, atol=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FastGroupLinear(2, (1, 2, 3), 4, 4), r"`nclasses_per_group` must be 2 numbers.* got 3: \(1, 2, 3\)"),
        (lambda: FastGroupLinear(2, (1, -1), 4, 4), "`nclasses_per_group` must be 2 numbers of classes, 0 or more"),
        (lambda: FastGroupLinear(1, (1,), 0, 4), "must be 1 or more, got 0 and 4"),
        (lambda: FastGroupLinear(2, (1, 2), 4, 4)(torch.zeros(1, 2, 5)), r"`x` must be \(B, 2, 4\), got \(1, 2, 5\)"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
