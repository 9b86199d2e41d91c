"""Nineteen programs with races, and their repairs, by somebody who had not read the detector nor its other programs.

Each is a function of `repaired`, as in racy.py. They were written from experience with streams, events, pinned memory,
hooks and collectives, and not after public threads. One of them was missed at first: `staging_refilled`. A twentieth
replays a CUDA graph, which is refused while races are looked for.
"""

from __future__ import annotations

import queue
import threading

import pytest
import torch
import torch.distributed as dist


def prefetcher_uses_too_early(repaired: bool) -> None:
    """A prefetcher copies the next batch on its own stream."""

    class Prefetcher:
        def __init__(self, batches):
            self.batches, self.stream, self.next = iter(batches), torch.cuda.Stream(), None
            self.load()

        def load(self):
            batch = next(self.batches, None)
            with torch.cuda.stream(self.stream):
                self.next = None if batch is None else batch.cuda(non_blocking=True)

        def __iter__(self):
            while self.next is not None:
                if repaired:
                    torch.cuda.current_stream().wait_stream(self.stream)
                batch = self.next
                batch.record_stream(torch.cuda.current_stream())
                self.load()
                yield batch

    batches = [torch.full((256,), float(k)).pin_memory() for k in range(4)]
    total = torch.zeros((), device="cuda")
    for batch in Prefetcher(batches):
        total += batch.mean()
    torch.cuda.synchronize()


def one_of_two_recorded(repaired: bool) -> None:
    """Images and targets are prefetched; both are allocated on the copy stream."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    images = [torch.rand(16, 3, 8, 8).pin_memory() for _ in range(4)]
    targets = [torch.arange(16).pin_memory() for _ in range(4)]
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 16)).cuda()
    losses = []

    def load(k):
        with torch.cuda.stream(copies):
            return images[k].to("cuda", non_blocking=True), targets[k].to("cuda", non_blocking=True)

    batch = load(0)
    for k in range(1, 4):
        main.wait_stream(copies)
        x, y = batch
        x.record_stream(main)
        if repaired:
            y.record_stream(main)
        losses.append(torch.nn.functional.cross_entropy(net(x), y).detach())
        del x, y, batch
        batch = load(k)
    del batch
    torch.cuda.synchronize()


def staging_refilled(repaired: bool) -> None:
    """A camera writes frames into one pinned buffer, through its NumPy array."""
    pytest.importorskip("numpy", reason="the program uses NumPy")
    staging = torch.empty(64, 64).pin_memory()
    frame = staging.numpy()
    copied = torch.cuda.Event()
    for k in range(3):
        if repaired:
            copied.synchronize()
        frame[:] = k
        staging.to("cuda", non_blocking=True)
        copied.record()
    torch.cuda.synchronize()


def host_reads_too_early(repaired: bool) -> None:
    """A metric is copied to pinned memory without a wait."""
    scores = torch.rand(1000, device="cuda")
    host = torch.empty(1000).pin_memory()
    host.copy_(scores.sort().values, non_blocking=True)
    if repaired:
        torch.cuda.current_stream().synchronize()
    float(host[500])


def numpy_of_a_late_copy(repaired: bool) -> None:
    """Predictions become an array of NumPy."""
    pytest.importorskip("numpy", reason="the program uses NumPy")
    logits = torch.randn(32, 10, device="cuda")
    predicted = logits.argmax(1).to("cpu", non_blocking=True)
    if repaired:
        torch.cuda.synchronize()
    predicted.numpy().max()


def event_before_the_work(repaired: bool) -> None:
    """The event is recorded before the work for which it should be a sign."""
    side, main, ready = torch.cuda.Stream(), torch.cuda.current_stream(), torch.cuda.Event()
    weight = torch.rand(128, 128, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        if not repaired:
            ready.record()
        scaled = weight / weight.norm()
        if repaired:
            ready.record()
    main.wait_event(ready)
    scaled.record_stream(main)
    (scaled * scaled).sum()
    torch.cuda.synchronize()


def event_of_the_wrong_stream(repaired: bool) -> None:
    """The event is recorded outside of the context, so on the stream of the caller."""
    side, main, ready = torch.cuda.Stream(), torch.cuda.current_stream(), torch.cuda.Event()
    rows = torch.rand(512).pin_memory()
    with torch.cuda.stream(side):
        on_gpu = rows.cuda(non_blocking=True)
    if not repaired:
        ready.record()
    else:
        ready.record(side)
    ready.wait()
    on_gpu.record_stream(main)
    on_gpu.sum()
    torch.cuda.synchronize()


def wait_before_the_record(repaired: bool) -> None:
    """Who waits for an event that nobody has recorded yet does not wait."""
    side, main, done = torch.cuda.Stream(), torch.cuda.current_stream(), torch.cuda.Event()
    x = torch.ones(100, device="cuda")
    side.wait_stream(main)
    if not repaired:
        main.wait_event(done)
    with torch.cuda.stream(side):
        x.mul_(3)
        done.record(side)
    if repaired:
        main.wait_event(done)
    x.sum()
    torch.cuda.synchronize()


def average_of_weights(repaired: bool) -> None:
    """An average of the weights is kept on a side stream, which waits for the step; the next step overtakes it."""
    net = torch.nn.Linear(8, 8).cuda()
    average = [p.detach().clone() for p in net.parameters()]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(4, 8, device="cuda")).square().mean().backward()
        if repaired:
            main.wait_stream(side)
        optimizer.step()
        side.wait_stream(main)
        with torch.cuda.stream(side), torch.no_grad():
            for a, p in zip(average, net.parameters(), strict=True):
                a.lerp_(p, 0.01)
    main.wait_stream(side)
    torch.cuda.synchronize()


def step_beside_backward(repaired: bool) -> None:
    """Forward and backward run on a side stream, the optimizer on the default one."""
    net = torch.nn.Linear(8, 1).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    x = torch.rand(4, 8, device="cuda")
    for _ in range(2):
        side.wait_stream(main)
        with torch.cuda.stream(side):
            net(x).mean().backward()
        if repaired:
            main.wait_stream(side)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    torch.cuda.synchronize()


def reduced_but_not_yet(repaired: bool) -> None:
    """The mean is taken before the sum has arrived."""
    loss = torch.ones(4, device="cuda")
    work = dist.all_reduce(loss, async_op=True)
    if repaired:
        work.wait()
    loss /= dist.get_world_size()
    if not repaired:
        work.wait()
    torch.cuda.synchronize()


def hooks_reduce_beside(repaired: bool) -> None:
    """Hooks sum each gradient on a side stream as soon as it is there; the step does not wait for them."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    side = torch.cuda.Stream()

    def reduce(parameter):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            dist.all_reduce(parameter.grad)

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(reduce)
    for _ in range(2):
        net(torch.ones(4, 8, device="cuda")).mean().backward()
        if repaired:
            torch.cuda.current_stream().wait_stream(side)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    torch.cuda.synchronize()


def the_wrong_stream_waits(repaired: bool) -> None:
    """`work.wait()` holds back the current stream, and that is a different one here."""
    logs = torch.cuda.Stream()
    bucket = torch.ones(1000, device="cuda")
    work = dist.all_reduce(bucket, async_op=True)
    with torch.cuda.stream(logs):
        work.wait()
        bucket.norm()
    if repaired:
        torch.cuda.current_stream().wait_stream(logs)
    bucket.zero_()
    torch.cuda.synchronize()


def a_stream_waits_for_itself(repaired: bool) -> None:
    """The wait is inside of the context, in which the current stream is the side stream."""
    side = torch.cuda.Stream()
    x = torch.rand(64, 64, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x @ x
        if not repaired:
            torch.cuda.current_stream().wait_stream(side)
    if repaired:
        torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    _ = y + 1
    torch.cuda.synchronize()


def ring_of_two_slots(repaired: bool) -> None:
    """Two slots on the GPU are filled in turn; one is filled while the kernel of two rounds ago may read it."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    slots = [torch.empty(256, device="cuda") for _ in range(2)]
    filled = [torch.cuda.Event() for _ in slots]
    emptied = [torch.cuda.Event() for _ in slots]
    sources = [torch.full((256,), float(k)).pin_memory() for k in range(6)]
    sums = []
    copies.wait_stream(main)
    for k, source in enumerate(sources):
        slot = k % 2
        with torch.cuda.stream(copies):
            if repaired:
                copies.wait_event(emptied[slot])
            slots[slot].copy_(source, non_blocking=True)
            filled[slot].record()
        main.wait_event(filled[slot])
        sums.append(slots[slot].sum())
        emptied[slot].record()
    torch.cuda.synchronize()


def synchronize_the_wrong_gpu(repaired: bool) -> None:
    """`synchronize()` waits for the current GPU, which is the first one; the work is on the second."""
    x = torch.rand(100, device="cuda:1")
    host = torch.empty(100).pin_memory()
    host.copy_(x.cumsum(0), non_blocking=True)
    if not repaired:
        torch.cuda.synchronize()
    else:
        torch.cuda.synchronize("cuda:1")
    host.tolist()


def temporary_reused(repaired: bool) -> None:
    """A temporary of the default stream is used on a side stream, and goes; the next tensor gets its memory."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = torch.rand(64, 64, device="cuda")

    def beside(x):
        doubled = x * 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            result = doubled @ weight
        if repaired:
            doubled.record_stream(side)
        return result

    first = beside(torch.rand(64, 64, device="cuda"))
    other = torch.zeros(64, 64, device="cuda")
    other += 1
    main.wait_stream(side)
    first.record_stream(main)
    first.sum()
    torch.cuda.synchronize()


def offloaded_and_zeroed(repaired: bool) -> None:
    """Gradients go to the host on a side stream, and are zeroed meanwhile."""
    net = torch.nn.Linear(16, 16).cuda()
    kept = [torch.empty(p.shape).pin_memory() for p in net.parameters()]
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    net(torch.ones(2, 16, device="cuda")).sum().backward()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        for host, p in zip(kept, net.parameters(), strict=True):
            host.copy_(p.grad, non_blocking=True)
    if repaired:
        main.wait_stream(side)
    net.zero_grad(set_to_none=False)
    torch.cuda.synchronize()


def handed_over_by_a_thread(repaired: bool) -> None:
    """A loader thread copies on a stream of its own and hands the tensor over in a queue."""
    ready = queue.Queue()

    def load():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for k in range(3):
                batch = torch.full((128,), float(k)).pin_memory().cuda(non_blocking=True)
                ready.put((batch, stream.record_event()))
        ready.put(None)

    thread = threading.Thread(target=load)
    thread.start()
    means = []
    while (item := ready.get()) is not None:
        batch, copied = item
        if repaired:
            copied.wait()
        batch.record_stream(torch.cuda.current_stream())
        means.append(batch.mean())
    thread.join()
    torch.cuda.synchronize()


PROGRAMS = [
    value for value in list(vars().values()) if callable(value) and getattr(value, "__module__", "") == __name__
]
