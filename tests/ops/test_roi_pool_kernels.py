"""The kernels of RoI max pooling, each against the loops; the operator in PyTorch's machinery."""

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import vgpu
from course.lessons.nb17 import without_gpu
from course.lessons.nb17.loops_roi_pool import loops_pool, loops_scatter
from course.lessons.nb17.roi_module import roi_module
from frcnn_lite.ops import roi_bins, roi_pool, roi_pool_with_argmax
from frcnn_lite.ops.roi_pool import plain_scatter, vision_pool

SIZE = [2, 5, 13, 17]


def triton_kernels() -> Any:
    pytest.importorskip("triton")
    return without_gpu.triton_on_cpu("roi_pool")


def cuda_kernels() -> Any:
    if without_gpu.compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA source with")

    def launched(function: Any) -> Any:
        return lambda *args: function(*args, launch=without_gpu.launch_with_compiler)

    return SimpleNamespace(pool=launched(roi_module.pool), scatter=launched(roi_module.scatter))


def numba_kernels() -> Any:
    pytest.importorskip("numba")
    from frcnn_lite.ops.kernels import numba_roi_pool

    return numba_roi_pool


KERNELS = {
    "torchvision": lambda: SimpleNamespace(pool=vision_pool, scatter=plain_scatter),
    "numba": numba_kernels,
    "cuda": cuda_kernels,
    "triton": triton_kernels,
}


@pytest.fixture(scope="module")
def case() -> tuple[Tensor, Tensor]:
    """Features with NaN and ties, and regions of which some are swapped and some lie outside the map."""
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(SIZE, generator=draw)
    features[0, 0, 2:6], features[1, 2, 3:9], features[1, 3] = torch.nan, 1.0, -torch.inf
    corners = torch.rand(12, 4, generator=draw) * 160 - 20
    return features, torch.cat([torch.randint(0, 2, (12, 1), generator=draw).float(), corners], dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", KERNELS)
def test_equals_the_loops_bit_for_bit(name: str, dtype: torch.dtype, case: tuple[Tensor, Tensor]) -> None:
    kernel, (features, rois) = KERNELS[name](), case
    features = features.to(dtype)
    expected = loops_pool(features, rois, 4, 3, 1 / 8)
    bins = roi_bins(rois, (13, 17), 4, 3, 1 / 8)
    for layout in (torch.contiguous_format, torch.channels_last):
        for bits, width in ((32, torch.int32), (16, torch.int16)):
            values, argmax = kernel.pool(features.contiguous(memory_format=layout), *bins, bits)
            assert torch.equal(values, expected[0]) and torch.equal(argmax, expected[1].to(width))
            assert argmax.dtype == width and values.is_contiguous() and argmax.is_contiguous()
    values, argmax = kernel.pool(features, *bins, 0)
    assert torch.equal(values, expected[0]) and argmax.numel() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_equals_the_loops(name: str, dtype: torch.dtype, case: tuple[Tensor, Tensor]) -> None:
    kernel, (features, rois) = KERNELS[name](), case
    values, argmax = loops_pool(features.to(dtype), rois, 4, 3, 1 / 8)
    grad = torch.randn(values.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    expected = loops_scatter(grad, argmax, rois[:, 0].long(), SIZE)
    for narrow in (argmax, argmax.short()):
        assert torch.equal(kernel.scatter(grad, narrow, rois[:, 0].long(), SIZE), expected)


@pytest.mark.parametrize("name", KERNELS)
def test_no_regions_and_no_channels(name: str) -> None:
    kernel = KERNELS[name]()
    for size, regions in (([2, 3, 4, 4], 0), ([1, 0, 4, 4], 2)):
        bins = roi_bins(torch.zeros(regions, 5), (4, 4), 2, 3, 1.0)
        values, argmax = kernel.pool(torch.ones(size), *bins, 32)
        assert values.shape == argmax.shape == (regions, size[1], 2, 3)
        assert not kernel.scatter(values, argmax, bins[0], size).any()


@pytest.mark.parametrize("macros", [("Feature=float", "Argmax=short"), ("Feature=double", "Argmax=int")])
def test_nvrtc_compiles_the_cuda_source(macros: tuple[str, ...]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    text = without_gpu.ptx(roi_module.SOURCE, macros, "compute_90")
    assert ".target sm_90" in text and ".entry roi_pool(" in text and ".entry roi_pool_backward(" in text


def test_nvrtc_says_what_is_wrong() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    with pytest.raises(ValueError, match='"nothing" is undefined'):
        without_gpu.ptx('extern "C" __global__ void f() { nothing; }', ())


@pytest.mark.parametrize("kernel", ["_pool", "_scatter"])
def test_triton_compiles_for_a_gpu_that_is_not_there(kernel: str) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget

    from frcnn_lite.ops.kernels import triton_roi_pool

    function = getattr(triton_roi_pool, kernel)
    pointers = {"features": "*bf16", "values": "*bf16", "grad": "*bf16", "out": "*fp32", "argmax": "*i16"}
    pointers |= dict.fromkeys(("images", "rows", "columns"), "*i64") | {"lowest": "fp32"}
    constants = {"BLOCK": 128, "WIDE": triton.language.float32, "KEEP": True}
    names = function.arg_names
    signature = {name: "constexpr" if name in constants else pointers.get(name, "i32") for name in names}
    source = triton.compiler.ASTSource(function, signature, {n: v for n, v in constants.items() if n in names})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert ".target sm_90" in compiled.asm["ptx"] and len(compiled.asm["cubin"]) > 0


def test_launch_arithmetic() -> None:
    assert [roi_module.block_count(n) for n in (1, 1023, 1024, 1025)] == [1, 1, 1, 2]


# ---- the operator ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 16, 0])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_operator_is_declared_as_it_behaves(bits: int, requires_grad: bool) -> None:
    if requires_grad and not bits:
        return  # refused in backward, see test_what_kept_no_argmax_has_no_gradient
    features = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(0))
    rois = torch.tensor([[0.0, 0, 0, 40, 50], [1, 8, 20, 50, 60]])
    for x in (features, features.contiguous(memory_format=torch.channels_last)):
        arguments = x.clone().requires_grad_(requires_grad), rois, 3, 2, 0.125, bits
        torch.library.opcheck(torch.ops.frcnn_lite.roi_pool.default, arguments)


def test_backward_operator_is_declared_as_it_behaves() -> None:
    grad, argmax = torch.randn(2, 3, 3, 2), torch.randint(-1, 72, (2, 3, 3, 2), dtype=torch.int16)
    for channels_last in (False, True):
        arguments = grad.clone().requires_grad_(), argmax, torch.tensor([1, 0]), [2, 3, 9, 8], channels_last
        torch.library.opcheck(torch.ops.frcnn_lite.roi_pool_backward.default, arguments)


@pytest.mark.compiles
def test_compiles_without_a_graph_break(case: tuple[Tensor, Tensor]) -> None:
    def step(features: Tensor, rois: Tensor) -> Tensor:
        return roi_pool(features * 2, rois, (4, 3), 1 / 8).clamp(-1, 1).sum()

    features, rois = case[0].nan_to_num(neginf=0.0), case[1]
    eager, compiled = (features.clone().requires_grad_() for _ in range(2))
    step(eager, rois).backward()
    torch.compile(step, backend="aot_eager", fullgraph=True)(compiled, rois).backward()
    assert eager.grad is not None and compiled.grad is not None and torch.equal(eager.grad, compiled.grad)


def test_autocast_leaves_the_coordinates_alone() -> None:
    """In bfloat16 a corner at 515 pixels would move to 516."""
    features, rois = torch.randn(1, 4, 64, 64).bfloat16(), torch.tensor([[0.0, 3.0, 515.0, 200.0, 700.0]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(roi_pool(features, rois, 7, 1 / 16), roi_pool(features.float(), rois, 7, 1 / 16).bfloat16())


def test_any_number_of_threads_gives_the_same_bits() -> None:
    pytest.importorskip("numba")
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(3, 130, 13, 17, generator=draw)
    corners = torch.rand(90, 4, generator=draw) * 17
    rois = torch.cat([torch.randint(0, 3, (90, 1), generator=draw).float(), corners], dim=1)
    grad = torch.randn(90, 130, 3, 3, generator=draw)

    def step() -> tuple[Tensor, Tensor]:
        x = features.clone().requires_grad_()
        pooled = roi_pool(x, rois, 3)
        return pooled.detach(), torch.autograd.grad(pooled, x, grad)[0]

    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(step())
    torch.set_num_threads(2)
    callers = [threading.Thread(target=lambda: found.append(step())) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    torch.set_num_threads(before)
    assert len(found) == 7
    assert all(torch.equal(pooled, found[0][0]) and torch.equal(grad, found[0][1]) for pooled, grad in found)


def test_virtual_gpus_need_no_compiled_form(case: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = loops_pool(*case, 4, 3, 1 / 8)
    monkeypatch.setattr(sys.modules[roi_pool.__module__], "compiled", lambda name: None)
    with vgpu.virtual_gpus(2):
        features = case[0].cuda(1).requires_grad_()
        values, argmax = roi_pool_with_argmax(features, case[1].cuda(1), (4, 3), 1 / 8)
        assert values.device == argmax.device == features.device
        assert torch.equal(values.detach().cpu(), expected[0]) and torch.equal(argmax.cpu(), expected[1])
        values.sum().backward()
        assert features.grad is not None and features.grad.sum() == (argmax >= 0).sum()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_lowest_number_of_a_dtype_is_never_found(dtype: torch.dtype) -> None:
    """The search starts there, also where half precision has to be pooled in float32, which reaches lower."""
    lowest = max(torch.finfo(dtype).min, torch.finfo(torch.float32).min)
    features = torch.full((1, 1, 2, 4), lowest, dtype=dtype)
    features[..., 2:] = -torch.inf
    bins = roi_bins(torch.tensor([[0.0, 0.0, 0.0, 3.0, 1.0]]), (2, 4), 1, 2, 1.0)
    values, argmax = vision_pool(features, *bins)
    assert values.dtype == dtype and values.flatten().tolist() == [lowest] * 2 and argmax.unique().tolist() == [-1]


# ---- CuPy's launch, on virtual GPUs ----------------------------------------------------------------------------------


class FakeCuPy:
    """The four names of CuPy that a launch uses; kernels run through the C++ compiler, and every launch is noted."""

    def __init__(self) -> None:
        self.compiled: list[tuple[str, int]] = []
        self.launches: list[dict[str, Any]] = []
        self.entered: dict[str, Any] = {}
        self.cuda = SimpleNamespace(
            Device=lambda index: self.enter("device", index),
            Stream=SimpleNamespace(from_external=lambda stream: self.enter("stream", stream)),
        )

    @contextlib.contextmanager
    def enter(self, name: str, value: Any) -> Iterator[None]:
        self.entered[name] = value
        yield
        del self.entered[name]

    def RawKernel(self, source: str, name: str, options: tuple[str, ...]) -> Any:
        self.compiled.append((name, self.entered["device"]))
        library = without_gpu._library(source, name, tuple(option.removeprefix("-D") for option in options))

        def launch(grid: tuple[int], block: tuple[int], args: list[np.generic]) -> None:
            assert all(isinstance(x, np.generic) for x in args)
            self.launches.append({**self.entered, "grid": grid, "block": block})
            held = [np.asarray(x) for x in args]
            pointers = (ctypes.c_void_p * len(held))(*(x.ctypes.data for x in held))
            library.launch_kernel(pointers, grid[0], block[0])

        return launch


def test_cupy_launches_on_the_tensors_device_and_pytorchs_stream(
    case: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    if without_gpu.compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA source with")
    fake = FakeCuPy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    roi_module._load.cache_clear()
    features, rois = case
    expected = loops_pool(features, rois, 4, 3, 1 / 8)
    with vgpu.virtual_gpus(2):
        stream = torch.cuda.Stream(1)
        for gpu in (0, 1, 1):  # device 0 is current throughout
            bins = roi_bins(rois.cuda(gpu), (13, 17), 4, 3, 1 / 8)
            with torch.cuda.stream(stream) if gpu else contextlib.nullcontext():
                values, argmax = roi_module.pool(features.cuda(gpu), *bins)
            assert values.device.index == gpu and torch.equal(values.cpu(), expected[0])
            assert torch.equal(argmax.cpu(), expected[1])
        grad = roi_module.scatter(torch.ones_like(values), argmax, bins[0], SIZE)
        assert grad.device.index == 1 and grad.sum() == (argmax >= 0).sum()
    roi_module._load.cache_clear()
    assert fake.compiled == [("roi_pool", 0), ("roi_pool", 1), ("roi_pool_backward", 1)]
    assert [launch["device"] for launch in fake.launches] == [0, 1, 1, 1]
    assert fake.launches[1]["stream"] == stream and fake.launches[3]["stream"] != stream
    assert fake.launches[0]["grid"] == (1,) and fake.launches[3]["grid"] == (3,)
    assert {launch["block"] for launch in fake.launches} == {(1024,)}
