"""What the expressions of programs.toml are made of, and the programs of several lines."""

from __future__ import annotations

import contextlib
import copy  # noqa: F401  (these names are for programs.toml)
import io
import os
import pickle  # noqa: F401
import re  # noqa: F401
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    import torchvision  # noqa: F401  (without it the programs that name it answer with a NameError)

WHOLE: dict[str, Callable[[], object]] = {}


def _whole(function: Callable[[], object]) -> Callable[[], object]:
    WHOLE[function.__name__] = function
    return function


def cpu(*shape: int) -> torch.Tensor:
    """1, 2, 3, ... in float32."""
    return torch.arange(1, 1 + int(np.prod(shape)), dtype=torch.float32).reshape(shape)


def gpu(*shape: int) -> torch.Tensor:
    """The same on the GPU."""
    return cpu(*shape).to("cuda")


def number(device: str) -> torch.Tensor:
    """A tensor without dimensions."""
    return torch.tensor(1.0, device=device)


def zero_one(device: str) -> torch.Tensor:
    """Two indices."""
    return torch.tensor([0, 1], device=device)


def whole(*shape: int) -> torch.Tensor:
    """Ones in int64."""
    return torch.ones(*shape, dtype=torch.long, device="cuda")


def drawn(*shape: int) -> torch.Tensor:
    """Random numbers."""
    return torch.rand(*shape, device="cuda")


def learned(*shape: int) -> torch.Tensor:
    """Random numbers that get a gradient."""
    return torch.rand(*shape, device="cuda", requires_grad=True)


def heads(dtype: torch.dtype = torch.half, dim: int = 64, n: int = 8) -> torch.Tensor:
    """Queries, keys or values of two heads."""
    return torch.randn(1, 2, n, dim, device="cuda", dtype=dtype)


def shown(tensor: Any) -> str:
    """Where a tensor is, its dtype and its shape."""
    return f"{tensor.device} {tensor.dtype} {tuple(tensor.shape)}"


def saved(value: Any) -> io.BytesIO:
    """A file of torch.save."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def clipped_on_two_devices() -> str:
    """The norm of gradients, one of which is on the CPU."""
    parameters = [nn.Parameter(gpu(2)), nn.Parameter(cpu(2))]
    parameters[0].grad, parameters[1].grad = gpu(2), cpu(2)
    return shown(nn.utils.clip_grad_norm_(parameters, 1.0))


def default_device() -> object:
    """What is made where, while the GPU is the default device."""
    torch.set_default_device("cuda")
    try:
        made = [torch.zeros(1), nn.Linear(1, 1).weight, torch.tensor([1.0]), torch.from_numpy(np.ones(1))]
        first, *others = map(shown, made)
        return first, str(torch.get_default_device()), *others
    finally:
        torch.set_default_device(None)


def without_autocast() -> torch.Tensor:
    """A product inside a block that switches autocast off again."""
    with torch.autocast("cuda", enabled=False):
        return drawn(2, 2) @ drawn(2, 2)


def scaled_half() -> None:
    """A scaler meets a gradient in half precision."""
    scaler, weight = torch.amp.GradScaler("cuda"), nn.Parameter(torch.ones(2, device="cuda").half())
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)


def scaled_on_the_cpu() -> list[float]:
    """A scaler for the GPU meets a parameter on the CPU."""
    scaler, weight = torch.amp.GradScaler("cuda"), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return weight.tolist()


def trained(name: str, **options: Any) -> object:
    """Three steps of an optimizer: the weights, and where its state is."""
    torch.manual_seed(0)
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(cpu(*parameter.shape) / 10)
    layer.to("cuda")
    optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1, **options)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        squares = (layer(gpu(1, 2)) ** 2).sum()
        squares.backward()
        return squares

    for _ in range(3):
        optimizer.step(loss)
    weights = [round(value, 5) for value in layer.weight.flatten().tolist()]
    state = optimizer.state[layer.weight].items()
    return weights, sorted((key, str(value.device)) for key, value in state if torch.is_tensor(value))


def _held() -> int:
    return torch.cuda.memory_allocated()


@_whole
def memory_zero_size() -> int:
    before, _tensor = _held(), torch.empty(0, device="cuda")
    return _held() - before


@_whole
def memory_views() -> object:
    before, tensor = _held(), torch.empty(1000, device="cuda")
    part, counts = tensor[:10], [_held() - before]
    del tensor
    counts.append(_held() - before)
    del part
    return *counts, _held() - before


@_whole
def memory_expand() -> object:
    before, wide = _held(), torch.empty(1, device="cuda").expand(1000, 1000)
    one = _held() - before
    _copy = wide.contiguous()
    return one, _held() - before


@_whole
def memory_peak() -> object:
    torch.cuda.reset_peak_memory_stats()
    before = _held()
    torch.empty(2**20, device="cuda")
    return torch.cuda.max_memory_allocated() - before, _held() - before


@_whole
def memory_inplace_vs_out() -> object:
    x = torch.ones(2**18, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = _held()
    x.mul_(2)
    inside = torch.cuda.max_memory_allocated() - before
    _twice = x * 2
    return inside, _held() - before


@_whole
def oom_caught() -> object:
    try:
        return torch.empty(2**45, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        kinds = (RuntimeError, torch.OutOfMemoryError)
        return type(error).__mro__[1].__name__, *(isinstance(error, kind) for kind in kinds)


@_whole
def event_untimed() -> object:
    start, end = torch.cuda.Event(), torch.cuda.Event()
    start.record()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


@_whole
def event_unrecorded() -> object:
    return torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True))


@_whole
def event_timed() -> object:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    gpu(2) + 1
    end.record()
    torch.cuda.synchronize()
    return type(start.elapsed_time(end)).__name__, start.query(), start.elapsed_time(end) >= 0


@_whole
def streams() -> object:
    side, now, default = torch.cuda.Stream(), torch.cuda.current_stream(), torch.cuda.default_stream()
    told = [side.device.type, side == now, now == default, side.query(), default.cuda_stream]
    with torch.cuda.stream(side):
        told.append(torch.cuda.current_stream() == side)
    side.wait_stream(now)
    side.wait_event(side.record_event())
    side.synchronize()
    gpu(2).record_stream(side)
    return told


@_whole
def graph() -> object:
    x, side = torch.ones(4, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x * 2  # before a capture a kernel has run once
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x * 2
    x.fill_(3)
    captured.replay()
    return y.tolist()


@_whole
def sync_debug() -> object:
    torch.cuda.set_sync_debug_mode("error")
    try:
        return gpu(2).sum().item()
    finally:
        torch.cuda.set_sync_debug_mode(0)


@_whole
def sync_debug_warn() -> object:
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            x = torch.ones(3, device="cuda")
            x.nonzero()
            x.cpu()
            bool(x.sum())
            x[x > 0]
            torch.ones(2).to("cuda")
            return [str(warning.message)[:60] for warning in told]
    finally:
        torch.cuda.set_sync_debug_mode(0)


@_whole
def rng_repeat() -> object:
    def four(device: str) -> torch.Tensor:
        torch.manual_seed(3)
        return torch.randn(4, device=device)

    first, again = four("cuda"), four("cuda")
    return torch.equal(first, again), torch.equal(first.cpu(), four("cpu"))


@_whole
def rng_values() -> object:
    torch.manual_seed(0)
    numbers = [torch.rand(4, device="cuda"), torch.randn(3, device="cuda")]
    rounded = [[round(value, 4) for value in tensor.tolist()] for tensor in numbers]
    return *rounded, torch.randint(100, (4,), device="cuda").tolist(), torch.randperm(5, device="cuda").tolist()


@_whole
def rng_offset() -> list[int]:
    torch.cuda.manual_seed(1)
    generator, moved = torch.cuda.default_generators[0], []
    before = generator.get_offset()
    for size in (1, 4, 5, 1000, 10**6):
        torch.rand(size, device="cuda")
        moved.append(generator.get_offset() - before)
        before = generator.get_offset()
    F.dropout(torch.ones(1000, device="cuda"))
    return [*moved, generator.get_offset() - before]


@_whole
def scaler() -> list[object]:
    scale, weight = torch.amp.GradScaler("cuda"), nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.SGD([weight], 1.0)

    def step() -> None:
        scale.step(optimizer)
        scale.update()

    told: list[object] = [scale.get_scale()]
    scale.scale((weight * float("inf")).sum()).backward()
    step()
    told += [scale.get_scale(), weight.tolist()]
    optimizer.zero_grad()
    scale.scale(weight.sum()).backward()
    scale.unscale_(optimizer)
    told.append(weight.grad.tolist())
    try:
        scale.unscale_(optimizer)
    except RuntimeError as error:
        told.append(str(error))
    step()
    return [*told, weight.tolist()]


@_whole
def optimizer_moved() -> str:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    for place, device in ((cpu, "cpu"), (gpu, "cuda")):
        layer.to(device)
        optimizer.zero_grad()
        layer(place(1, 2)).sum().backward()
        optimizer.step()
    return "stepped"


@_whole
def loader_pinned() -> object:
    data = [(torch.ones(2), {"a": torch.ones(1)})] * 4
    batch = next(iter(torch.utils.data.DataLoader(data, 2, pin_memory=True)))
    return batch[0].is_pinned(), batch[1]["a"].is_pinned()


@_whole
def data_parallel_one() -> object:
    model = nn.DataParallel(nn.Linear(2, 2).to("cuda"))
    return model.device_ids, str(model.src_device_obj), shown(model(gpu(4, 2)))


@_whole
def data_parallel_cpu_module() -> object:
    return nn.DataParallel(nn.Linear(2, 2))(gpu(4, 2))


@_whole
def data_parallel_cpu_in() -> str:
    return shown(nn.DataParallel(nn.Linear(2, 2).to("cuda"))(cpu(4, 2)))


@_whole
def threads() -> list[object]:
    told: list[object] = []
    thread = threading.Thread(target=lambda: told.append((torch.cuda.current_device(), shown(drawn(1)))))
    thread.start()
    thread.join()
    return told


@_whole
def fork() -> str:
    torch.zeros(1, device="cuda")
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            torch.zeros(1, device="cuda")
            told = "ran"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(theirs, told.encode()[:300])
        os._exit(0)
    os.close(theirs)
    told = os.read(ours, 400).decode()
    os.close(ours)
    os.waitpid(child, 0)
    return told


@_whole
def syncbn() -> object:
    return nn.SyncBatchNorm(2).to("cuda")(gpu(4, 2))


@_whole
def syncbn_cpu() -> object:
    return nn.SyncBatchNorm(2)(cpu(4, 2))


@_whole
def grad_devices() -> str:
    weight = cpu(2).requires_grad_()
    (weight.cuda() * 2).sum().backward()
    return shown(weight.grad)


@_whole
def grad_wrong_device() -> object:
    return (gpu(2).requires_grad_() * 2).backward(cpu(2))


@_whole
def nvtx() -> str:
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.range_pop()
    return "ok"
