"""Programs in which two streams, or a stream and the host, use one piece of memory without an order, and their repairs.

Each is a function of `repaired`: without the repair its result depends on luck, with it the program is right. They are
written after public threads, which their docstrings name where there is one; the code is our own, and short. They were
written before the detector that is tried on them, but for the last.
"""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

N = 1024  # elements of a tensor: 4 KiB of float32


def copy_read_on_default(repaired: bool) -> None:
    """ROCm/pytorch#3194, diffusers#13502: the default stream computes with weights that another stream still copies."""
    transfer, weight = torch.cuda.Stream(), torch.ones(N).pin_memory()
    with torch.cuda.stream(transfer):
        on_gpu = weight.to("cuda", non_blocking=True)
    if repaired:
        torch.cuda.current_stream().wait_stream(transfer)
    _ = on_gpu + 1
    torch.cuda.synchronize()


def copy_over_what_is_read(repaired: bool) -> None:
    """ROCm/pytorch#3194, before the copy: what is copied into is still read by the default stream."""
    transfer, weight, buffer = torch.cuda.Stream(), torch.ones(N).pin_memory(), torch.zeros(N, device="cuda")
    _ = buffer + 1
    if repaired:
        transfer.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(transfer):
        buffer.copy_(weight, non_blocking=True)
    torch.cuda.synchronize()


def side_reads_what_default_writes(repaired: bool) -> None:
    """pytorch#59692: a sum on a new stream of what the default stream has just drawn."""
    drawn, side = torch.randn(N, device="cuda"), torch.cuda.Stream()
    if repaired:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        drawn.sum()
    torch.cuda.synchronize()


def two_writers(repaired: bool) -> None:
    """The example of PyTorch's page on its sanitizer: a tensor is made on one stream and multiplied on another."""
    a, side = torch.rand(4, 2, device="cuda"), torch.cuda.Stream()
    if repaired:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.mul(a, 5, out=a)
    torch.cuda.synchronize()


def wait_in_the_wrong_direction(repaired: bool) -> None:
    """The side stream waits for the default stream, but the result travels the other way."""
    x, side, main = torch.ones(N, device="cuda"), torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x * 2
    (main if repaired else side).wait_stream(side if repaired else main)
    _ = y + 1
    torch.cuda.synchronize()


def event_recorded_too_early(repaired: bool) -> None:
    """The event that is waited for happens before the kernel whose result is wanted."""
    x, side, done = torch.ones(N, device="cuda"), torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        if not repaired:
            done.record()
        y = x * 2
        if repaired:
            done.record()
    torch.cuda.current_stream().wait_event(done)
    _ = y + 1
    torch.cuda.synchronize()


def event_of_the_wrong_stream(repaired: bool) -> None:
    """`record()` without an argument, after the block: it records the default stream, not the side stream."""
    x, side, done = torch.ones(N, device="cuda"), torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
    done.record(side if repaired else None)
    torch.cuda.current_stream().wait_event(done)
    _ = y + 1
    torch.cuda.synchronize()


def static_input_overwritten(repaired: bool) -> None:
    """A prefetcher copies the next batch into the buffer from which the step of now still reads."""
    buffer, copies, main = torch.zeros(N, device="cuda"), torch.cuda.Stream(), torch.cuda.current_stream()
    for batch in (torch.ones(N).pin_memory(), torch.ones(N).pin_memory()):
        if repaired:
            copies.wait_stream(main)
        with torch.cuda.stream(copies):
            buffer.copy_(batch, non_blocking=True)
        main.wait_stream(copies)
        buffer.sum()
    torch.cuda.synchronize()


def prefetch_and_data_dist(repaired: bool) -> None:
    """torchrec#4191: one side stream changes the cache for the next batch while another still reads from it."""
    cache = torch.zeros(N, device="cuda")
    prefetch, data_dist = torch.cuda.Stream(), torch.cuda.Stream()
    for stream in (prefetch, data_dist):
        stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(prefetch):
        cache[: N // 2].sum()
    if repaired:
        data_dist.wait_stream(prefetch)
    with torch.cuda.stream(data_dist):
        cache.index_fill_(0, torch.arange(4, device="cuda"), 1.0)
    torch.cuda.synchronize()


def overlapping_columns(repaired: bool) -> None:
    """Two streams work on columns of one matrix; one column belongs to both."""
    x, side = torch.zeros(8, 8, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x[:, :4].add_(1)
    x[:, 4 if repaired else 3 :].add_(1)
    torch.cuda.synchronize()


def freed_while_it_is_copied(repaired: bool) -> None:
    """pytorch#23729: memory of the default stream is freed, and given out again, while a side stream reads it."""
    side, x = torch.cuda.Stream(), torch.ones(N, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        _ = x * 2
    if repaired:
        x.record_stream(side)
    del x
    torch.full((N,), -1.0, device="cuda")
    torch.cuda.synchronize()


def resized_away_while_it_is_copied(repaired: bool) -> None:
    """torchrec#4218, #4231: weights are stashed on the host, and their memory is given back by `resize_(0)`."""
    side, weight, stash = torch.cuda.Stream(), torch.ones(N, device="cuda"), torch.empty(N, pin_memory=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        stash.copy_(weight, non_blocking=True)
    if repaired:
        weight.record_stream(side)
    weight.untyped_storage().resize_(0)
    torch.full((N,), -1.0, device="cuda")
    torch.cuda.synchronize()


def offloaded_while_it_is_used(repaired: bool) -> None:
    """diffusers#14657: weights of one block make room for the next while the compute stream still reads them."""
    transfer, main = torch.cuda.Stream(), torch.cuda.current_stream()
    x = torch.ones(N, device="cuda")
    for weight in (torch.ones(N).pin_memory(), torch.ones(N).pin_memory()):
        with torch.cuda.stream(transfer):
            on_gpu = weight.to("cuda", non_blocking=True)
        main.wait_stream(transfer)
        x = x * on_gpu
        if repaired:
            main.synchronize()
        del on_gpu
    torch.cuda.synchronize()


def stream_recorded_inside_the_block(repaired: bool) -> None:
    """diffusers#12721: inside the block, the current stream is the transfer stream, which needs no record."""
    transfer, main = torch.cuda.Stream(), torch.cuda.current_stream()
    x = torch.ones(N, device="cuda")
    for weight in (torch.ones(N).pin_memory(), torch.ones(N).pin_memory()):
        with torch.cuda.stream(transfer):
            on_gpu = weight.to("cuda", non_blocking=True)
            on_gpu.record_stream(main if repaired else torch.cuda.current_stream())
        main.wait_stream(transfer)
        x = x * on_gpu
        del on_gpu
    torch.cuda.synchronize()


def pinned_read_too_early(repaired: bool) -> None:
    """vllm#36013: the host reads pinned memory through NumPy before the copy into it is done."""
    pytest.importorskip("numpy", reason="the program reads through NumPy")
    counts, on_host, done = torch.ones(N, device="cuda"), torch.zeros(N, pin_memory=True), torch.cuda.Event()
    on_host.copy_(counts, non_blocking=True)
    done.record()
    if repaired:
        done.synchronize()
    on_host.numpy().sum()
    torch.cuda.synchronize()


def to_the_host_and_read(repaired: bool) -> None:
    """The pinning tutorial of PyTorch: `to("cpu", non_blocking=True)` returns before the values are there."""
    loss = torch.ones(N, device="cuda").to("cpu", non_blocking=True)
    if repaired:
        torch.cuda.synchronize()
    loss.sum()
    torch.cuda.synchronize()


def waits_for_the_wrong_device(repaired: bool) -> None:
    """Two GPUs, one of which is current: `synchronize()` waits for that one alone."""
    on_host = torch.zeros(N, pin_memory=True)
    on_host.copy_(torch.ones(N, device="cuda:1"), non_blocking=True)
    torch.cuda.synchronize("cuda:1" if repaired else None)
    on_host.add_(1)
    torch.cuda.synchronize("cuda:1")


def pinned_overwritten(repaired: bool) -> None:
    """pytorch#126946, vllm-ascend#12079: the host prepares the next step in a buffer that is still being copied."""
    buffer, on_gpu, copied = torch.zeros(N, pin_memory=True), torch.empty(N, device="cuda"), torch.cuda.Event()
    for step in range(2):
        buffer.fill_(step)
        on_gpu.copy_(buffer, non_blocking=True)
        copied.record()
        if repaired:
            copied.synchronize()
    torch.cuda.synchronize()


def all_reduce_read_without_wait(repaired: bool) -> None:
    """`async_op=True`, and nobody waits for the work before the result is used."""
    grad = torch.ones(N, device="cuda")
    work = dist.all_reduce(grad, async_op=True)
    if repaired:
        work.wait()
    grad.div_(2)
    work.wait()
    torch.cuda.synchronize()


def input_overwritten_while_it_is_sent(repaired: bool) -> None:
    """The input of a collective belongs to it until it is done."""
    shard, whole = torch.ones(N, device="cuda"), torch.empty(N * dist.get_world_size(), device="cuda")
    work = dist.all_gather_into_tensor(whole, shard, async_op=True)
    if repaired:
        work.wait()
    shard.zero_()
    work.wait()
    torch.cuda.synchronize()


def reduced_on_side_and_freed(repaired: bool) -> None:
    """pytorch#188655: reduced on a side stream, which waits; but the memory goes back to the default stream."""
    side, a = torch.cuda.Stream(), torch.ones(N, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        dist.all_reduce(a, async_op=True).wait()
    if repaired:
        a.record_stream(side)
    del a
    torch.full((N,), -1.0, device="cuda")
    torch.cuda.synchronize()


def step_after_a_side_backward(repaired: bool) -> None:
    """Forward and backward run on a side stream, and the optimizer on the default stream does not wait for them."""
    model, x, side = torch.nn.Linear(8, 8, device="cuda"), torch.ones(2, 8, device="cuda"), torch.cuda.Stream()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(x).sum().backward()
    if repaired:
        torch.cuda.current_stream().wait_stream(side)
    optimizer.step()
    torch.cuda.synchronize()


def side_stream_of_another_device(repaired: bool) -> None:
    """As on the first device, so on the second."""
    side, x = torch.cuda.Stream("cuda:1"), torch.ones(N, device="cuda:1")
    if repaired:
        side.wait_stream(torch.cuda.current_stream("cuda:1"))
    with torch.cuda.stream(side):
        x.mul_(2)
    torch.cuda.synchronize("cuda:1")


def peer_copy_of_an_unfinished_tensor(repaired: bool) -> None:
    """A copy to another GPU waits for the current streams of both, and for no side stream."""
    side, x = torch.cuda.Stream(), torch.ones(N, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.mul_(2)
    if repaired:
        torch.cuda.current_stream().wait_stream(side)
    x.to("cuda:1")
    torch.cuda.synchronize()


def prefetched_across_backward(repaired: bool) -> None:
    """The next batch is fetched during the step; that backward comes between does not let the next step wait for it."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    model, batch = torch.nn.Linear(8, 8, device="cuda"), torch.ones(2, 8, device="cuda")
    for _ in range(2):
        loss = model(batch).sum()
        with torch.cuda.stream(copies):
            ahead = torch.ones(2, 8).pin_memory().to("cuda", non_blocking=True)
        loss.backward()
        if repaired:
            main.wait_stream(copies)
            ahead.record_stream(main)
        batch = ahead
    torch.cuda.synchronize()


PROGRAMS = [
    value for value in list(vars().values()) if callable(value) and getattr(value, "__module__", "") == __name__
]
