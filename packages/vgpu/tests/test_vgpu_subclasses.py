"""Tensor subclasses of the user's own keep their class on virtual GPUs; wrappers of PyTorch's say where they are."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

pytestmark = pytest.mark.usefixtures("gpus")


class Image(torch.Tensor):
    """A subclass without anything of its own."""


def test_it_keeps_its_class_there_and_back():
    image = torch.arange(6.0).view(2, 3).as_subclass(Image)
    there = image.cuda(1)
    assert type(there).__name__ == "Image" and isinstance(there, Image) and there.device == torch.device("cuda:1")
    assert isinstance(there * 2, Image) and (there * 2).device == torch.device("cuda:1")
    assert type(there.cpu()) is Image and there.cpu().equal(image)
    assert repr(there).startswith("Image([[0., 1., 2.],") and "device='cuda:1'" in repr(there)


@pytest.mark.parametrize("data", [([1.0, 2.0],), (2, 3), (torch.ones(2),)], ids=["list", "sizes", "tensor"])
def test_construction(data):
    assert type(Image(*data)) is Image
    assert isinstance(Image(torch.ones(2, device="cuda:1")), Image)


def test_gradients_reach_the_leaf():
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    (x.as_subclass(Image) ** 2).sum().backward()
    assert type(x.grad.cpu()) is torch.Tensor and x.grad.tolist() == [2, 2, 2]


def test_copies_pickles_and_files():
    image = torch.ones(2).as_subclass(Image).cuda(1)
    file = io.BytesIO()
    torch.save(image, file)
    file.seek(0)
    for other in (copy.deepcopy(image), pickle.loads(pickle.dumps(image)), torch.load(file, weights_only=False)):
        assert isinstance(other, Image) and other.device == image.device and other.tolist() == [1, 1]


class Flat(nn.Parameter):
    """A parameter with something of its own, as fairscale's and vLLM's are."""

    def __new__(cls, data, requires_grad=True):
        return super().__new__(cls, data, requires_grad)

    def __init__(self, data, requires_grad=True):
        self.sizes = [data.numel()]


def test_a_subclass_of_parameter_stays_one():
    flat = Flat(torch.ones(2, device="cuda:1"))
    module = nn.Module()
    module.weight = Flat(torch.ones(2))
    for one in (flat, copy.deepcopy(flat), copy.deepcopy(module.cuda(1)).weight):
        assert isinstance(one, Flat) and isinstance(one, nn.Parameter) and one.device == torch.device("cuda:1")
        assert one.requires_grad and one.is_leaf
    assert flat.sizes == [2] and type(flat.cpu()) is torch.Tensor
    again = pickle.loads(pickle.dumps(flat))  # as from PyTorch's own: a Parameter with the attributes
    assert isinstance(again, nn.Parameter) and again.sizes == [2] and again.device == flat.device


def test_a_parameter_of_a_subclass_follows_its_module():
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2).as_subclass(Image))
    before = module.weight
    module.cuda(1)
    assert module.weight is before and isinstance(before, Image) and isinstance(before, nn.Parameter)
    assert before.device == torch.device("cuda:1")
    module.cpu()
    assert type(before) is Image and isinstance(before, nn.Parameter)


def test_a_subclass_that_is_made_is_not_asked_for_its_functions():
    class Strict(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError(f"{func.__name__} is unknown to this class")

    made = torch.Tensor._make_subclass(Strict, torch.ones(2, device="cuda:1"), True)
    with torch._C.DisableTorchFunctionSubclass():
        assert isinstance(made, Strict) and made.requires_grad and made.device == torch.device("cuda:1")


def test_gradients_of_each_sample_as_expanded_weights_compute_them():
    layer = torch.nn.Linear(3, 2, device="cuda:1")
    rows = torch.arange(12.0, device="cuda:1").reshape(4, 3)
    call_for_per_sample_grads(layer)(rows).sum().backward()
    torch.testing.assert_close(layer.weight.grad_sample, rows[:, None].expand(4, 2, 3))


def test_every_tensor_is_an_instance_of_the_type_of_a_gpu_tensor():
    assert isinstance(torch.ones(1), type(torch.ones(1, device="cuda")))


def test_inside_vmap_and_grad_the_device_is_the_public_one():
    seen = []

    def look(row):
        seen.append((row.device, row.is_cuda, row.is_cpu, row.get_device()))
        return row.sin().sum()

    x = torch.ones(2, 3, device="cuda:2")
    torch.vmap(look)(x)
    torch.func.grad(look)(x)
    assert seen == [(torch.device("cuda:2"), True, False, 2)] * 2


def test_vectorized_jacobian_across_devices():
    x = torch.arange(3.0)
    there = torch.autograd.functional.jacobian(lambda t: (t * t).cuda(1), x, vectorize=True)
    assert there.cpu().equal(torch.diag(2 * x))


def test_jagged_tensors_are_wrappers_and_compute_with_what_they_wrap():
    weight = torch.arange(6.0).view(2, 3)
    results = []
    for device in ("cpu", "cuda:1"):
        rows, w = torch.arange(10.0, device=device).view(5, 2), weight.to(device, copy=True).requires_grad_()
        jagged = torch.nested.nested_tensor_from_jagged(rows, torch.tensor([0, 2, 5], device=device))
        out = (jagged @ w).sin()
        out.values().sum().backward()
        assert str(out.device) == device and str(out.values().device) == device
        results.append((out.values().cpu(), w.grad.cpu()))
    for there, here in zip(*results, strict=True):
        torch.testing.assert_close(there, here)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="cuda"),
        lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], device="cuda"),
    ],
    ids=["nested", "csr"],
)
def test_what_is_not_simulated_says_so(make):
    with pytest.raises(NotImplementedError, match="virtual GPUs do not simulate"):
        make()
