"""What is not simulated says so by name, in an error whose traceback has the line of the program."""

import importlib
import importlib.util
import os
import sys
import traceback
import warnings

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import vgpu
from vgpu.base import errors

pytestmark = pytest.mark.usefixtures("gpus")


def symmetric():
    from torch.distributed import _symmetric_memory

    _symmetric_memory.empty(4, device="cuda")


def remote_calls():
    rpc = pytest.importorskip("torch.distributed.rpc")
    if not rpc.is_available():
        pytest.skip("this build has no RPC")
    rpc.init_rpc("alone", rank=0, world_size=1)


def future():
    torch.futures.Future(devices=["cuda:1"])


def extension():
    from torch.utils import cpp_extension

    cpp_extension.load_inline("mine", ["void f();"], cuda_sources=["__global__ void k() {}"], functions=["f"])


def jiterated():
    # PyTorch's table of operators makes such functions while it is imported, so that alone must not raise.
    same = torch.cuda.jiterator._create_jit_fn("template <typename T> T same(T x) { return x; }")
    same(torch.ones(2, device="cuda"))


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: torch.cuda.temperature(), r"torch\.cuda\.temperature"),
        (lambda: torch.cuda.CUDAPluggableAllocator(), r"torch\.cuda\.CUDAPluggableAllocator"),
        (lambda: torch.cuda.CUDAPluggableAllocator.allocator(None), r"torch\.cuda\.CUDAPluggableAllocator\.allocator"),
        (symmetric, r"torch\.distributed\._symmetric_memory\.empty"),
        (remote_calls, r"torch\.distributed\.rpc\.init_rpc"),
        (future, r"torch\.futures\.Future\(devices=\.\.\.\)"),
        (extension, r"custom CUDA kernels \(the extension 'mine'\)"),
        (jiterated, r"kernels of torch\.cuda\.jiterator \(same\)"),
    ],
)
def test_by_name_and_at_the_programs_line(use, name):
    with pytest.raises(NotImplementedError, match=name) as caught:
        use()
    files = [frame.filename for frame in traceback.extract_tb(caught.tb)]
    assert files[1] == __file__


@pytest.mark.parametrize(
    "name", ["register_generator_state", "capture_begin", "capture_end", "replay", "reset", "pool"]
)
def test_a_program_may_ask_what_graphs_can_do(name):
    """Megatron-LM asserts that a method is there before it makes a graph."""
    assert callable(getattr(torch.cuda.CUDAGraph, name))


def test_there_is_no_multicast():
    symmetric = pytest.importorskip("torch.distributed._symmetric_memory")
    assert not symmetric._SymmetricMemory.has_multicast_support(torch._C._autograd.DeviceType.CUDA, 0)


def test_where_warnings_are_errors_a_notice_is_a_line(monkeypatch, capsys):
    errors.note.cache_clear()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record(), end.record()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert start.elapsed_time(end) >= 0
    assert capsys.readouterr().err == "vgpu: virtual GPUs have no times: this is how long the host took\n"
    errors.note.cache_clear()
    with pytest.warns(errors.Notice, match="virtual GPUs have no times"):
        start.elapsed_time(end)


def test_the_sanitizer_however_it_is_switched_on(monkeypatch):
    from torch.cuda import _sanitizer

    with pytest.raises(NotImplementedError, match=r"torch\.cuda\._sanitizer"):
        _sanitizer.enable_cuda_sanitizer()
    vgpu.disable()
    monkeypatch.setattr(_sanitizer.cuda_sanitizer, "enabled", True)  # as TORCH_CUDA_SANITIZER does
    with pytest.raises(NotImplementedError, match=r"torch\.cuda\._sanitizer"):
        vgpu.enable(2)
    assert not vgpu.is_enabled()


def test_kernels_of_triton(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    (tmp_path / "vgpu_kernels.py").write_text("import triton\n\n@triton.jit\ndef scale(pointer):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vgpu_kernels

    with pytest.raises(NotImplementedError, match=r"Triton kernels \(scale\); TRITON_INTERPRET=1"):
        vgpu_kernels.scale[(1,)](torch.ones(2, device="cuda"))


KERNELS = """
import torch, triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside), mask=inside)

tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (64, 128)], key=["n"])(add)

def sums(device):
    x, y = torch.rand(2, 200, device=device)
    for kernel, sizes in ((add, {"BLOCK": 64}), (tuned, {})):
        out = torch.zeros_like(x)
        kernel[lambda given: (triton.cdiv(200, given["BLOCK"]),)](x, y, out, 200, **sizes)
        yield out, x + y
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A file of kernels, which are defined where it is imported."""
    pytest.importorskip("triton")
    (tmp_path / "vgpu_sums.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vgpu_sums", raising=False)
    return lambda: importlib.import_module("vgpu_sums")


def test_kernels_of_triton_are_interpreted_where_somebody_asks_for_it(kernels):
    pytest.importorskip("numpy")
    before = os.environ.get("TRITON_INTERPRET")
    vgpu.enable(2, triton="interpret")
    for out, expected in kernels().sums("cuda:1"):
        assert out.device == torch.device("cuda", 1)
        torch.testing.assert_close(out, expected)
    vgpu.disable()
    assert os.environ.get("TRITON_INTERPRET") == before


def test_kernels_of_triton_are_refused_inside_of_a_cuda_graph(kernels):
    """No operator tells the capture what they read and write."""
    pytest.importorskip("numpy")
    vgpu.enable(2, triton="interpret")
    graph, words = torch.cuda.CUDAGraph(), r"Triton kernels in a CUDA graph \(add\)"
    with pytest.raises(NotImplementedError, match=words), torch.cuda.graph(graph):
        next(kernels().sums("cuda"))


def test_kernels_of_triton_that_would_be_tuned_are_refused_by_name(kernels):
    module = kernels()
    with pytest.raises(NotImplementedError, match=r"Triton kernels \(add\); TRITON_INTERPRET=1"):
        module.tuned[(1,)](*torch.rand(3, 8, device="cuda"), 8)
    vgpu.enable(2, triton="interpret")
    with pytest.raises(NotImplementedError, match=r"Triton kernels \(add\), and this one was defined before"):
        next(module.sums("cuda"))


def test_an_unknown_way_to_run_kernels_is_named(monkeypatch):
    with pytest.raises(ValueError, match="triton must be 'interpret', got 'compile'"):
        vgpu.enable(2, triton="compile")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="triton='interpret' needs the package triton"):
        vgpu.enable(2, triton="interpret")


def test_everything_is_put_back():
    symmetric_memory = pytest.importorskip("torch.distributed._symmetric_memory")
    with pytest.raises(NotImplementedError, match="not simulated"):
        symmetric_memory.empty(4, device="cuda")
    vgpu.disable()
    assert symmetric_memory.empty.__module__ == symmetric_memory.__name__
    assert not hasattr(symmetric_memory.empty, "__wrapped__"), "a refusal still wraps it"


def test_the_profiler_records_the_host_and_is_quiet(capfd):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as profiled:
            torch.ones(3, device="cuda").add(1)
    events = {event.key for event in profiled.key_averages()}
    assert {"aten::ones", "aten::add"} <= events
    assert "aten::add" in profiled.key_averages().table(sort_by="cuda_time_total")
    assert "Failed to record CUDA event" not in capfd.readouterr().err
    assert [w for w in said if "CUDA" in str(w.message)] == []
