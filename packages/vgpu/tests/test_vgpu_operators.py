"""Operators that a user wrote in Python, and wrappers that take part in an operator, see virtual tensors."""

from typing import ClassVar

import pytest
import torch
from torch.utils._pytree import tree_map

pytestmark = pytest.mark.usefixtures("gpus")


def test_a_custom_operator_for_every_device():
    seen: list = []

    @torch.library.custom_op("vgpu_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.device)
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    y = twice(x)
    y.sum().backward()
    assert y.device == x.device and y.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 2, 2]
    assert seen == [torch.device("cuda:1")] and twice(torch.ones(1)).device.type == "cpu"


def test_a_custom_operator_for_cuda_alone():
    seen: list = []

    @torch.library.custom_op("vgpu_tests::fill", mutates_args={"x"}, device_types="cuda")
    def fill(x: torch.Tensor, value: float) -> None:
        seen.append((x.device, torch.cuda.current_device()))
        x.fill_(value)

    x = torch.zeros(2, device="cuda:1")
    version = x._version
    fill(x, 3.0)
    assert x.tolist() == [3, 3] and x._version > version and seen[0][0] == x.device
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'vgpu_tests::fill' with arguments from the 'CPU' back"
    ):
        fill(torch.zeros(2), 3.0)


def test_an_operator_of_the_lower_interface_chooses_its_kernel_by_the_host():
    torch.library.define("vgpu_tests::chooses", "(Tensor x) -> Tensor")

    @torch.library.impl("vgpu_tests::chooses", "default")
    def _(x: torch.Tensor) -> torch.Tensor:
        assert not x.is_cuda, "where a kernel of Triton's would be launched"
        return x + torch.ones(2, device=x.device)

    y = torch.ops.vgpu_tests.chooses(torch.ones(2, device="cuda:1"))
    assert y.tolist() == [2, 2] and y.device == torch.device("cuda:1")


@pytest.mark.parametrize("first", ["cpu", None], ids=["CPU", "all devices"])
def test_beside_a_kernel_for_cuda_which_may_be_tritons_the_other_one_runs(first):
    name = f"vgpu_tests::third_{first}".lower()
    seen: list = []

    @torch.library.custom_op(name, mutates_args=(), device_types=first)
    def third(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.device)
        return x * 3

    @third.register_kernel("cuda")
    def _(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("a kernel of Triton's, say")

    y = third(torch.ones(2, device="cuda:1"))
    assert y.tolist() == [3, 3] and y.device == torch.device("cuda:1")
    assert seen == [torch.device("cpu" if first else "cuda:1")]


def test_a_custom_operator_for_the_cpu_alone():
    @torch.library.custom_op("vgpu_tests::on_host", mutates_args=(), device_types="cpu")
    def on_host(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    assert on_host(torch.ones(1)).tolist() == [1]
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'vgpu_tests::on_host' with arguments from the 'CUDA'"
    ):
        on_host(torch.ones(1, device="cuda"))


class Logged(torch.Tensor):
    """A wrapper that knows of every operator its tensor meets."""

    inner: torch.Tensor
    log: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func._schema.name)
        assert all(issubclass(t, torch.Tensor) for t in types)
        args, kwargs = tree_map(lambda x: x.inner if isinstance(x, Logged) else x, (args, kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))


@pytest.mark.parametrize("first", [True, False], ids=["wrapper first", "tensor first"])
def test_a_wrapper_takes_over_wherever_it_stands(first):
    plain = torch.full((2,), 3.0, device="cuda:1")
    wrapper = Logged(torch.ones(2, device="cuda:1"))
    Logged.log.clear()
    total = wrapper + plain if first else plain + wrapper
    assert isinstance(total, Logged) and total.device == torch.device("cuda:1") and total.inner.tolist() == [4, 4]
    assert Logged.log == ["aten::add"]
