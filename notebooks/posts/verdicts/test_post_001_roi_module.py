"""Post 001, notes on simple-faster-rcnn-pytorch: its RoI module with CuPy, run line by line on virtual GPUs."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from verdict import verdict

from course.lessons.nb17 import cupy_of_2017, without_gpu
from course.lessons.nb17.cupy_of_2017 import load
from course.lessons.nb17.roi_module import roi_module
from frcnn_lite import ops
import vgpu

RULE, MEMORY, KERNELS = "15_roi_pooling_the_rule", "16_a_function_with_a_memory", "17_roi_pooling_kernels"
POSTS = Path(__file__).resolve().parents[1]
TEXT = (POSTS / "001_roi_module.py").read_text(encoding="utf-8")
AT_LAUNCH = [
    (f"self.{way}_fn(args=args,", f"load_kernel('roi_{way}', kernel_{way})(args=args,")
    for way in ("forward", "backward")
]
STREAMS_ARE_SHARED = hasattr(torch.cuda.Stream, "__cuda_stream__")  # asked of the real one, before virtual GPUs are on
B, N, C, H, W, PH, PW = 2, 8, 4, 32, 32, 7, 7  # of its own test

pool = partial(ops.roi_pool, output_size=(PH, PW), spatial_scale=1 / 16)


@pytest.fixture(autouse=True)
def two_gpus() -> Iterator[None]:
    with vgpu.virtual_gpus(2):
        yield


def module(*changes: tuple[str, str], then: bool = True) -> nn.Module:
    return load(*changes, then=then)["RoIPooling2D"](PH, PW, 1 / 16)


def case(regions: int = N) -> tuple[Tensor, Tensor]:
    """Its fake data, on the CPU."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(B, C, H, W, generator=draw)
    images = torch.arange(regions)[:, None] * B // regions
    return x, torch.cat([images, torch.rand(regions, 4, generator=draw) * 100], dim=1)


def gradient(function, x: Tensor, rois: Tensor, grad: Tensor | None = None) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    pooled = function(x, rois)
    pooled.backward(torch.ones_like(pooled) if grad is None else grad)
    assert x.grad is not None
    return pooled.detach(), x.grad


@verdict(
    "001",
    "the imports",
    claim="The kernels come from `model.utils.roi_cupy`.",
    ruling="incomplete",
    because="The notes do not print them, and the names of CuPy that compile them are gone. This project's source is "
    "its own.",
    notebook=KERNELS,
    words="do not print the kernels' source",
)
def test_kernels_are_not_printed():
    assert "import kernel_backward, kernel_forward" in TEXT and "__global__" not in TEXT
    assert roi_module.SOURCE.count("__global__") == 2


@verdict(
    "001",
    "load_kernel",
    claim="`cupy.util.memoize(for_each_device=True)` keeps one compiled kernel for each device.",
    ruling="not tried",
    because="CuPy was not run; a stand-in acts out its cache. A kernel belongs to the device that it was loaded on, so "
    "the cache has to know it; the name is `cupy.memoize` today.",
    notebook=KERNELS,
    words="keeps such kernels for each device in a cache",
)
def test_a_kernel_is_loaded_for_each_device():
    load_kernel = load()["load_kernel"]
    with torch.cuda.device(0):
        first, again = load_kernel("roi_forward", ""), load_kernel("roi_forward", "")
    with torch.cuda.device(1):
        other = load_kernel("roi_forward", "")
    assert first is again and first is not other and (first.device, other.device) == (0, 1)


@verdict(
    "001",
    "load_kernel, the template",
    claim="`Template` fills in the source, `compile_with_cache` compiles it, `get_function` finds the kernel.",
    ruling="right then",
    because="`cupy.RawKernel(source, name, options)` does all three; the options are macros, which NVRTC takes.",
    notebook=KERNELS,
    words="compile_with_cache",
)
def test_source_is_filled_in_by_macros():
    assert "compile_with_cache(code)" in TEXT
    pytest.importorskip("cuda.bindings.nvrtc")
    assert ".entry roi_pool(" in without_gpu.ptx(roi_module.SOURCE, ("Feature=float", "Argmax=int"))


@verdict(
    "001",
    "load_kernel, free(0)",
    claim="`cp.cuda.runtime.free(0)` comes first, so that there is a context to compile in.",
    ruling="not tried",
    because="CuPy was not run, nor a driver that lacks a context. The module loads its kernels when it is made, and "
    "nothing has to be on the GPU by then, so the line may be needed. `cupy.RawKernel` compiles at its first launch, "
    "on tensors that PyTorch has placed.",
    notebook=KERNELS,
    words="`free(0)`",
)
def test_kernels_are_loaded_before_any_tensor_is_there():
    layer = module()
    assert layer.RoI.forward_fn.name == "roi_forward" and layer.RoI.backward_fn.name == "roi_backward"


@verdict(
    "001",
    "GET_BLOCKS",
    claim="`(N + K - 1) // K` blocks of 1024 threads.",
    ruling="right",
    because="As many blocks as hold N threads and no more; those to spare in the last one return at once.",
    notebook=KERNELS,
    words="GET_BLOCKS",
)
def test_blocks_hold_all_threads():
    blocks = load()["GET_BLOCKS"]
    for numbers in (1, 1023, 1024, 1025, N * C * PH * PW, B * C * H * W):
        assert blocks(numbers) == roi_module.block_count(numbers)
        assert (blocks(numbers) - 1) * 1024 < numbers <= blocks(numbers) * 1024


@verdict(
    "001",
    "RoI.forward, contiguous",
    claim="The input must be contiguous before its pointer is taken.",
    ruling="right",
    because="A kernel counts on from the address: what it meets in a permuted view is another tensor's order.",
    notebook=KERNELS,
    words="an address has none",
)
def test_a_pointer_has_no_strides():
    x, rois = case()
    view = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    memory = view.as_strided((view.numel(),), (1,))
    assert torch.equal(view, x) and not torch.equal(memory, x.flatten())
    module_of_view, module_of_x = module()(view.cuda(), rois.cuda()), module()(x.cuda(), rois.cuda())
    assert torch.equal(module_of_view, module_of_x)


@verdict(
    "001",
    "`RoI.__init__`",
    claim="Both kernels are loaded when the Function is made.",
    ruling="not tried",
    because="CuPy was not run, nor a driver; a stand-in notes which kernel is launched. They are loaded for the device "
    "that is current then, so a second replica launches the first one's, which a driver refuses as an invalid resource "
    "handle. Looked up at the launch, the kernel is the replica's own.",
    notebook=KERNELS,
    words="CUDA_ERROR_INVALID_HANDLE",
)
def test_kernels_of_the_constructor_are_those_of_one_device():
    x, rois = (tensor.cuda(0) for tensor in case())
    printed, at_launch = module(), module(*AT_LAUNCH)
    assert torch.equal(printed(x, rois), pool(x, rois))  # one GPU, as there
    x, rois = x.cuda(1), rois.cuda(1)
    with torch.cuda.device(1):
        for layer in (printed, at_launch):
            assert torch.equal(layer(x, rois), pool(x, rois))  # the stand-in computes, whatever kernel it is
    assert cupy_of_2017.launched[-3:] == [(0, 0), (0, 1), (1, 1)]


@verdict(
    "001",
    "RoI, an old-style Function",
    claim="A Function has an `__init__`, a `forward(self, ...)`, and is called.",
    ruling="right then",
    because="Calling one has raised since torch 1.5: forward and backward are static, and `.apply` calls them.",
    notebook=MEMORY,
    words="*Until torch 1.4* this ran",
)
def test_an_instance_of_function_raises():
    x, rois = (tensor.cuda() for tensor in case())
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        module(then=False)(x, rois)


@verdict(
    "001",
    "RoI.forward, self",
    claim="`in_size`, `N`, `rois` and `argmax_data` wait on the instance for the backward pass.",
    ruling="incomplete",
    because="Right for one call and its backward, the case of that repository. The state is that of the last "
    "call: pooling twice before going back gives a wrong gradient without an error, and replicas, "
    "which share the instance, meet tensors of different devices.",
    notebook=MEMORY,
    words="the second call wrote its argmax over that of the first",
)
def test_state_is_that_of_the_last_call():
    x, rois = (tensor.cuda() for tensor in case())
    shared, weights = module(), torch.rand(N, C, PH, PW, generator=torch.Generator().manual_seed(1)).cuda()
    given = x.requires_grad_()
    first, _ = shared(given, rois), shared(given, rois.roll(1, 0))
    (found,) = torch.autograd.grad((first * weights).sum(), given)
    _, right = gradient(pool, x, rois, weights)
    assert not torch.equal(found, right)

    shared = module(*AT_LAUNCH)
    outputs = []
    for k in range(2):
        with torch.cuda.device(k):
            outputs.append(shared(x.detach().cuda(k).requires_grad_(), rois.cuda(k)))
    with pytest.raises(ValueError, match="`tensors` must be on one device"):
        outputs[0].sum().backward()


@verdict(
    "001",
    "RoI.forward, .cuda()",
    claim="Outputs are made by `t.zeros(...).cuda()`.",
    ruling="incomplete",
    because="Right on one GPU, for which it was written, and in DataParallel's threads: `.cuda()` means the "
    "current device. Where that is not the input's, as in a loop over devices, the kernel would "
    "write to a different GPU.",
    notebook=KERNELS,
    words="t.zeros(...).cuda()",
)
def test_outputs_go_to_the_current_device():
    x, rois = (tensor.cuda(1) for tensor in case())
    with torch.cuda.device(1):  # as DataParallel's threads have it
        assert torch.equal(module(*AT_LAUNCH)(x, rois), pool(x, rois))
    with pytest.raises(ValueError, match="x on cuda:1, rois on cuda:1, output on cuda:0, argmax on cuda:0"):
        module(*AT_LAUNCH)(x, rois)
    assert pool(x, rois).device == torch.device("cuda:1")


@verdict(
    "001",
    "RoI, docstring",
    claim="Only CUDA-compatible.",
    ruling="right",
    because="Its outputs are made by `.cuda()`, so an input on the CPU meets outputs on a GPU.",
)
def test_an_input_on_the_cpu_meets_outputs_on_a_gpu():
    with pytest.raises(ValueError, match="x on cpu, rois on cpu, output on cuda:0"):
        module()(*case())


@verdict(
    "001",
    "RoI, the stream",
    claim="Kernels are launched on the stream that is current in PyTorch.",
    ruling="not tried",
    because="Streams of a GPU were not run. On CuPy's own, a kernel could read what PyTorch has not written yet. What "
    "was a namedtuple with one attribute is `cupy.cuda.Stream.from_external(stream)` today.",
    notebook=KERNELS,
    words="cupy.cuda.Stream.from_external",
)
def test_stream_is_pytorchs():
    assert TEXT.count("Stream(ptr=torch.cuda.current_stream().cuda_stream)") == 2
    assert STREAMS_ARE_SHARED


@verdict(
    "001",
    "test_roi_module",
    claim="Two implementations of RoI pooling agree in every value and every gradient.",
    ruling="right",
    because="The notes do not print their kernels, and Chainer is no longer developed: with this project's pooling and "
    "torchvision's in their places, every number of both is equal.",
    notebook=KERNELS,
    words="numbers: those of torchvision's operator",
)
def test_its_own_test():
    vision = pytest.importorskip("torchvision").ops
    x, rois = case()
    theirs = gradient(partial(vision.roi_pool, output_size=(PH, PW), spatial_scale=1 / 16), x, rois)
    for function in (module(), pool):
        found = gradient(function, x.cuda(), rois.cuda())
        assert all(torch.equal(a.cpu(), b) for a, b in zip(found, theirs, strict=True))


@verdict(
    "001",
    "test_roi_module, the boxes",
    claim="Boxes with four random corners test a RoI pooling.",
    ruling="incomplete",
    because="Three in four are inside out, which the rule makes one cell wide or high, and no bin has more than two "
    "cells across.",
    notebook=RULE,
    words="inside out; the widest of 7 x 7 bins",
)
def test_random_corners_are_mostly_inside_out():
    _, rois = case(80_000)
    inside_out = (rois[:, 3:] < rois[:, 1:3]).any(dim=1).float().mean()
    assert abs(inside_out - 0.75) < 0.01
    _, rows, columns = ops.roi_bins(rois, (H, W), PH, PW, 1 / 16)
    assert max((bins[..., 1] - bins[..., 0]).max() for bins in (rows, columns)) == 2


@verdict(
    "001",
    "test_roi_module, the gradient",
    claim="`output.sum().backward()` shows that the gradient is exact.",
    ruling="incomplete",
    because="A gradient of ones adds up exactly in any order, so an order that changes from run to run goes unseen; "
    "random weights show it.",
    notebook=KERNELS,
    words="that of random numbers",
)
def test_ones_hide_the_order_of_the_sum():
    x, rois = case(300)
    rois[:, 3:] += 100
    weights = torch.randn(300, C, PH, PW, generator=torch.Generator().manual_seed(1))
    for grad, same in ((torch.ones_like(weights), True), (weights, False)):
        forwards, backwards = gradient(pool, x, rois, grad)[1], gradient(pool, x, rois.flip(0), grad.flip(0))[1]
        assert torch.equal(forwards, backwards) == same
