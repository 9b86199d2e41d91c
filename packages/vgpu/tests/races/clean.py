"""Programs with several streams that are right as they are: a detector that names a race in one of them is wrong.

They were written before the detector that is tried on them, but for the last two.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

N = 1024  # elements of a tensor: 4 KiB of float32


def rows_apart() -> None:
    """Each stream writes its own rows."""
    x, side = torch.zeros(8, 8, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x[:4].add_(1)
    x[4:].add_(1)
    torch.cuda.synchronize()


def columns_apart() -> None:
    """Each stream writes its own columns, whose bytes alternate."""
    x, side = torch.zeros(8, 8, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x[:, 0::2].add_(1)
    x[:, 1::2].add_(1)
    torch.cuda.synchronize()


def event_polled() -> None:
    """The host asks an event until it has happened, and then reads."""
    on_host, done = torch.zeros(N, pin_memory=True), torch.cuda.Event()
    on_host.copy_(torch.ones(N, device="cuda"), non_blocking=True)
    done.record()
    while not done.query():
        pass
    on_host.sum()


def stream_polled() -> None:
    """As with an event, so with a stream."""
    on_host, side, x = torch.zeros(N, pin_memory=True), torch.cuda.Stream(), torch.ones(N, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        on_host.copy_(x, non_blocking=True)
    while not side.query():
        pass
    on_host.sum()


def stream_synchronized() -> None:
    """The host waits for the side stream, and what it starts afterwards comes afterwards."""
    x, side = torch.ones(N, device="cuda"), torch.cuda.Stream()
    torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(side):
        x.mul_(2)
    side.synchronize()
    x.add_(1)


def device_synchronized() -> None:
    """The host waits for all streams."""
    x, sides = torch.ones(N, device="cuda"), [torch.cuda.Stream() for _ in range(3)]
    for side in sides:
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            x.mul_(2)
    torch.cuda.synchronize()
    x.add_(1)


def event_synchronized() -> None:
    """The host waits for an event of the side stream."""
    x, side = torch.ones(N, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.mul_(2)
        done = side.record_event()
    done.synchronize()
    x.add_(1)


def one_stream() -> None:
    """All of it runs on one stream that is not the default one."""
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.ones(N, device="cuda")
        for _ in range(3):
            x = x * 2 + 1
        x.sum().item()


def same_stream_twice() -> None:
    """The block is left and entered again: the stream keeps its order."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(N, device="cuda")
    with torch.cuda.stream(side):
        x.mul_(2)
    torch.cuda.synchronize()


def reads_only() -> None:
    """Three streams read one tensor."""
    x, sides = torch.ones(N, device="cuda"), [torch.cuda.Stream() for _ in range(2)]
    for side in sides:
        side.wait_stream(torch.cuda.current_stream())
    for side in sides:
        with torch.cuda.stream(side):
            _ = x + 1
    _ = x + 2
    torch.cuda.synchronize()


def order_passed_on() -> None:
    """The third stream waits for the second, which has waited for the first."""
    one, two, three = (torch.cuda.Stream() for _ in range(3))
    with torch.cuda.stream(one):
        x = torch.ones(N, device="cuda")
        first = one.record_event()
    two.wait_event(first)
    with torch.cuda.stream(two):
        second = two.record_event()
    three.wait_event(second)
    with torch.cuda.stream(three):
        x.mul_(2)
    torch.cuda.synchronize()


def event_recorded_again() -> None:
    """One event serves two steps: each wait means the last record."""
    main, side, ready = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Event()
    x = torch.ones(N, device="cuda")
    for _ in range(2):
        ready.record(main)
        side.wait_event(ready)
        with torch.cuda.stream(side):
            x.mul_(2)
            ready.record(side)
        main.wait_event(ready)
        x.add_(1)
    torch.cuda.synchronize()


def prefetcher() -> None:
    """The next batch is copied beside the step, the step waits for its own, and its memory knows both streams."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight, batches = torch.ones(N, device="cuda"), [torch.ones(N).pin_memory() for _ in range(4)]

    def fetch(batch: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(copies):
            return batch.to("cuda", non_blocking=True)

    ahead = fetch(batches[0])
    for after in [*batches[1:], None]:
        main.wait_stream(copies)
        batch = ahead
        batch.record_stream(main)
        if after is not None:
            ahead = fetch(after)
        weight.add_(batch)
    torch.cuda.synchronize()


def recorded_before_it_is_freed() -> None:
    """The allocator has been told of the side stream, and keeps the memory until that has finished."""
    side, x = torch.cuda.Stream(), torch.ones(N, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        _ = x * 2
    x.record_stream(side)
    del x
    torch.full((N,), -1.0, device="cuda")
    torch.cuda.synchronize()


def awaited_before_it_is_freed() -> None:
    """Without `record_stream`: the stream that gets the memory back has waited for the one that used it."""
    side, main, x = torch.cuda.Stream(), torch.cuda.current_stream(), torch.ones(N, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        _ = x * 2
    main.wait_stream(side)
    del x
    torch.full((N,), -1.0, device="cuda")
    torch.cuda.synchronize()


def freed_and_reused_on_one_stream() -> None:
    """Temporary tensors on the default stream, while a side stream works with memory of its own."""
    with torch.cuda.stream(torch.cuda.Stream()):
        kept = torch.ones(N, device="cuda")
    for _ in range(3):
        _ = torch.full((N,), 2.0, device="cuda") + 1
    with torch.cuda.stream(torch.cuda.Stream()):
        _ = torch.ones(N, device="cuda") + 1
    torch.cuda.synchronize()
    kept.sum()


def pinned_freed_at_once() -> None:
    """Pinned memory may go while it is copied: its allocator waits for the copies that it has seen."""
    on_gpu = torch.empty(N, device="cuda")
    for step in range(3):
        on_gpu.copy_(torch.full((N,), float(step)).pin_memory(), non_blocking=True)
    torch.cuda.synchronize()


def pinned_written_before_the_copy() -> None:
    """The host writes, starts the copy and reads along: only writing would disturb it."""
    buffer, on_gpu = torch.zeros(N, pin_memory=True), torch.empty(N, device="cuda")
    buffer.fill_(3)
    on_gpu.copy_(buffer, non_blocking=True)
    buffer.sum()
    torch.cuda.synchronize()
    buffer.fill_(4)


def pageable_memory() -> None:
    """Memory that is not pinned: CUDA has taken it over, or filled it, when a call with `non_blocking=True` returns."""
    buffer, on_gpu = torch.zeros(N), torch.empty(N, device="cuda")
    on_gpu.copy_(buffer, non_blocking=True)
    buffer.fill_(1)
    buffer.copy_(on_gpu, non_blocking=True)
    buffer.sum()


def blocking_copies() -> None:
    """A copy without `non_blocking=True` is waited for, and so is `item`."""
    buffer = torch.zeros(N, pin_memory=True)
    on_gpu = buffer.to("cuda")
    buffer.fill_(1)
    buffer.copy_(on_gpu)
    buffer.add_(on_gpu.sum().item())
    on_gpu.cpu().add_(1)


def collective_awaited() -> None:
    """`work.wait()` lets the current stream wait for the collective."""
    grad = torch.ones(N, device="cuda")
    work = dist.all_reduce(grad, async_op=True)
    _ = torch.ones(N, device="cuda") + 1
    work.wait()
    grad.div_(2)
    dist.all_reduce(grad)
    grad.sum().item()


def two_collectives_in_a_row() -> None:
    """One communicator runs its collectives in their order, so the second may take the result of the first."""
    grad = torch.ones(N, device="cuda")
    dist.all_reduce(grad, async_op=True)
    dist.broadcast(grad, 0, async_op=True).wait()
    grad.add_(1)
    torch.cuda.synchronize()


def functional_collective() -> None:
    """Its result waits when it is used."""
    total = functional.all_reduce(torch.ones(N, device="cuda"), "sum", dist.group.WORLD)
    (total + 1).sum().item()


def autograd_follows_the_forward() -> None:
    """Autograd runs each step of backward on the stream of its forward, and the caller's stream waits at the end."""
    model, x, side = torch.nn.Linear(8, 8, device="cuda"), torch.ones(2, 8, device="cuda"), torch.cuda.Stream()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = model(x).sum()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()


def peer_copy() -> None:
    """A copy from one GPU to another waits for the current streams of both, before and after."""
    x = torch.ones(N, device="cuda:0") * 2
    y = x.to("cuda:1")
    x.zero_()
    y.add_(1)
    y.to("cuda:0").add_(x)


def thread_with_a_stream() -> None:
    """Another thread starts the work, and the stream orders it."""
    x, side, main = torch.ones(N, device="cuda"), torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)

    def work() -> None:
        with torch.cuda.stream(side):
            x.mul_(2)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    main.wait_stream(side)
    x.add_(1)
    torch.cuda.synchronize()


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        made = x + x
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (made,) = ctx.saved_tensors
        return grads[0] * 2 + made * 0


def function_of_the_program_on_a_side_stream() -> None:
    """Its backward runs where its forward ran, and so does the part of a checkpoint that is computed again."""
    weight, side = torch.ones(8, device="cuda", requires_grad=True), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = _Doubled.apply(weight).sum()
    loss.backward()
    assert weight.grad is not None
    weight.grad.add_(1)
    torch.cuda.synchronize()


def reserved_here_and_filled_there() -> None:
    """`torch.empty` runs no kernel, so a side stream may fill what the default stream has reserved."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    static = torch.empty(2, N, device="cuda")
    with torch.cuda.stream(side):
        static[0].copy_(torch.ones(N).pin_memory(), non_blocking=True)
        static[0].add_(1)
        torch.empty_like(static[0])
    main.wait_stream(side)
    static[0].sum()
    torch.cuda.synchronize()


PROGRAMS = [
    value
    for name, value in list(vars().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
]
