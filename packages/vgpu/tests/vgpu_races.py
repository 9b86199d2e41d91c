"""Programs with a race, each with its repair, and programs without one, for test_vgpu_races.py.

`RACY` maps a name to a function that is called with False for the program with the race, and with True for the repaired
one. `CLEAN` are programs that look suspicious and are not. The kinds are those that people reported: see docs/races.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

RACY: dict[str, Callable[[bool], None]] = {}
CLEAN: dict[str, Callable[[], None]] = {}
MEGABYTE = 1 << 18  # of float32


def racy(program: Callable[[bool], None]) -> Callable[[bool], None]:
    RACY[program.__name__] = program
    return program


def clean(program: Callable[[], None]) -> Callable[[], None]:
    CLEAN[program.__name__] = program
    return program


def default() -> torch.cuda.Stream:
    return torch.cuda.current_stream()


@racy
def a_side_stream_reads_what_the_default_stream_writes(repaired: bool) -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    x.add_(1)
    if repaired:
        side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()


@racy
def a_result_of_a_side_stream_is_used_too_early(repaired: bool) -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        y = x * 2
    if repaired:
        default().wait_stream(side)
    y + 1


@racy
def two_streams_write_one_buffer(repaired: bool) -> None:
    one, other, buffer = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        buffer.fill_(1)
    if repaired:
        other.wait_stream(one)
    with torch.cuda.stream(other):
        buffer.fill_(2)


@racy
def a_batch_is_fetched_on_a_side_stream(repaired: bool) -> None:
    side, batch = torch.cuda.Stream(), torch.ones(4).pin_memory()
    with torch.cuda.stream(side):
        x = batch.to("cuda", non_blocking=True)
    if repaired:
        default().wait_stream(side)
        x.record_stream(default())
    nn.functional.relu(x)


@racy
def weights_are_offloaded_while_the_next_step_changes_them(repaired: bool) -> None:
    side, weight = torch.cuda.Stream(), torch.ones(4, device="cuda")
    kept = torch.empty(4).pin_memory()
    side.wait_stream(default())
    with torch.cuda.stream(side):
        kept.copy_(weight, non_blocking=True)
    if repaired:
        default().wait_stream(side)
    weight.mul_(0.9)


@racy
def the_host_reads_a_pinned_buffer_too_early(repaired: bool) -> None:
    x, kept = torch.ones(4, device="cuda"), torch.empty(4).pin_memory()
    kept.copy_(x, non_blocking=True)
    if repaired:
        torch.cuda.current_stream().synchronize()
    kept.sum()


@racy
def the_host_reads_the_array_of_a_copy_too_early(repaired: bool) -> None:
    x = torch.ones(4, device="cuda")
    kept, copied = x.to("cpu", non_blocking=True), torch.cuda.Event()
    copied.record()
    if repaired:
        copied.synchronize()
    kept.tolist()


@racy
def a_pinned_buffer_is_filled_again_before_it_was_copied(repaired: bool) -> None:
    buffer = torch.empty(4).pin_memory()
    for step in range(2):
        buffer.fill_(step)
        buffer.to("cuda", non_blocking=True)
        if repaired:
            torch.cuda.synchronize()


@racy
def memory_is_dropped_while_a_side_stream_reads_it(repaired: bool) -> None:
    side, x = torch.cuda.Stream(), torch.ones(MEGABYTE, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    if repaired:
        x.record_stream(side)
    del x
    torch.zeros(MEGABYTE, device="cuda")


@racy
def the_wrong_stream_is_recorded(repaired: bool) -> None:
    side, other, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.ones(MEGABYTE, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    x.record_stream(side if repaired else other)
    del x
    torch.zeros(MEGABYTE, device="cuda")


@racy
def a_temporary_of_a_side_stream_is_handed_out_again(repaired: bool) -> None:
    side, x = torch.cuda.Stream(), torch.ones(MEGABYTE, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        y = x * 2
    default().wait_stream(side)
    y.sum()
    if repaired:
        y.record_stream(default())
    del y
    with torch.cuda.stream(side):
        torch.zeros(MEGABYTE, device="cuda")


@racy
def an_event_is_recorded_before_the_work(repaired: bool) -> None:
    side, x, ready = torch.cuda.Stream(), torch.zeros(4, device="cuda"), torch.cuda.Event()
    if not repaired:
        ready.record()
    x.add_(1)
    if repaired:
        ready.record()
    side.wait_event(ready)
    with torch.cuda.stream(side):
        x.sum()


@racy
def the_wrong_stream_waits_for_the_event(repaired: bool) -> None:
    side, other, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(4, device="cuda")
    x.add_(1)
    ready = default().record_event()
    (side if repaired else other).wait_event(ready)
    with torch.cuda.stream(side):
        x.sum()


@racy
def an_event_that_was_never_recorded_is_waited_for(repaired: bool) -> None:
    side, x, ready = torch.cuda.Stream(), torch.zeros(4, device="cuda"), torch.cuda.Event()
    x.add_(1)
    if repaired:
        ready.record()
    side.wait_event(ready)
    with torch.cuda.stream(side):
        x.sum()


@racy
def the_streams_wait_in_the_wrong_direction(repaired: bool) -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    x.add_(1)
    if repaired:
        side.wait_stream(default())
    else:
        default().wait_stream(side)
    with torch.cuda.stream(side):
        x.mul_(2)


@racy
def a_pipeline_waits_for_the_batch_before(repaired: bool) -> None:
    copies, x = torch.cuda.Stream(), torch.zeros(2, 4, device="cuda")
    copies.wait_stream(default())
    ready = []
    for k in range(2):
        with torch.cuda.stream(copies):
            x[k].fill_(k)
        ready.append(copies.record_event())
    default().wait_event(ready[1 if repaired else 0])
    x[1].sum()


@racy
def an_average_of_weights_is_taken_beside_the_optimizer(repaired: bool) -> None:
    side, weight, average = torch.cuda.Stream(), torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        average.lerp_(weight, 0.1)
    if repaired:
        default().wait_stream(side)
    weight.add_(torch.ones_like(weight))


@racy
def gradients_are_changed_in_a_hook_on_a_side_stream(repaired: bool) -> None:
    net, side = nn.Linear(4, 1).cuda(), torch.cuda.Stream()

    def scale(weight: torch.Tensor) -> None:
        side.wait_stream(default())
        with torch.cuda.stream(side):
            weight.grad.mul_(0.5)  # type: ignore[union-attr]

    net.weight.register_post_accumulate_grad_hook(scale)
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    if repaired:
        default().wait_stream(side)
    torch.optim.SGD(net.parameters(), lr=0.1).step()


@racy
def a_copy_to_the_other_gpu_is_read_by_a_side_stream_there(repaired: bool) -> None:
    x, side = torch.ones(4, device="cuda:0"), torch.cuda.Stream("cuda:1")
    y = x.to("cuda:1")
    if repaired:
        side.wait_stream(torch.cuda.current_stream("cuda:1"))
    with torch.cuda.stream(side):
        y.sum()


@racy
def an_output_buffer_is_written_again_while_it_is_copied(repaired: bool) -> None:
    side, out, x = torch.cuda.Stream(), torch.empty(4, device="cuda"), torch.ones(4, device="cuda")
    kept = torch.empty(2, 4).pin_memory()
    for k in range(2):
        torch.add(x, k, out=out)
        side.wait_stream(default())
        with torch.cuda.stream(side):
            kept[k].copy_(out, non_blocking=True)
        if repaired:
            default().wait_stream(side)


@racy
def a_reduced_tensor_is_read_before_the_work_is_waited_for(repaired: bool) -> None:
    x = torch.ones(4, device="cuda")
    work = dist.all_reduce(x, async_op=True)
    if repaired:
        work.wait()
    x.sum()
    work.wait()


@racy
def a_tensor_is_changed_while_it_is_gathered(repaired: bool) -> None:
    x = torch.ones(4, device="cuda")
    out = torch.empty(4 * dist.get_world_size(), device="cuda")
    work = dist.all_gather_into_tensor(out, x, async_op=True)
    if repaired:
        work.wait()
    x.add_(1)
    work.wait()


@clean
def parts_of_one_tensor() -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, 4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x[:2].add_(1)
    x[2:].add_(2)


@clean
def columns_of_one_matrix() -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, 4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x[:, ::2].add_(1)
    x[:, 1::2].add_(2)


@clean
def an_event_is_polled_until_it_is_done() -> None:
    x, kept, copied = torch.ones(4, device="cuda"), torch.empty(4).pin_memory(), torch.cuda.Event()
    kept.copy_(x, non_blocking=True)
    copied.record()
    while not copied.query():
        pass
    kept.sum()


@clean
def a_stream_is_polled_until_it_is_idle() -> None:
    x, kept = torch.ones(4, device="cuda"), torch.empty(4).pin_memory()
    kept.copy_(x, non_blocking=True)
    while not default().query():
        pass
    kept.tolist()


@clean
def two_streams_read() -> None:
    side, x = torch.cuda.Stream(), torch.ones(4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    x.mean()


@clean
def one_stream_in_order() -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(MEGABYTE, device="cuda")
        x.mul_(2).sum()
        del x
        torch.zeros(MEGABYTE, device="cuda")


@clean
def the_host_waits_between_two_streams() -> None:
    one, other, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        x.add_(1)
    one.synchronize()
    with torch.cuda.stream(other):
        x.mul_(2)


@clean
def a_number_is_read_and_so_waited_for() -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    x.add_(1)
    x.sum().item()
    with torch.cuda.stream(side):
        x.mul_(2)


@clean
def three_streams_wait_in_a_row() -> None:
    one, other, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(4, device="cuda")
    one.wait_stream(default())
    other.wait_stream(one)
    with torch.cuda.stream(other):
        x.add_(1)
    default().wait_stream(other)
    x.sum()


@clean
def memory_is_dropped_after_the_stream_was_waited_for() -> None:
    side, x = torch.cuda.Stream(), torch.ones(MEGABYTE, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    default().wait_stream(side)
    del x
    torch.zeros(MEGABYTE, device="cuda")


@clean
def memory_is_dropped_and_waited_for_before_it_is_given_away() -> None:
    side, x = torch.cuda.Stream(), torch.ones(MEGABYTE, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    del x
    default().wait_stream(side)
    torch.zeros(MEGABYTE, device="cuda")


@clean
def a_large_tensor_does_not_fit_where_a_small_one_was() -> None:
    side, x = torch.cuda.Stream(), torch.ones(4, device="cuda")
    side.wait_stream(default())
    with torch.cuda.stream(side):
        x.sum()
    del x
    torch.zeros(4 * MEGABYTE, device="cuda")


@clean
def a_copy_that_blocks() -> None:
    x, kept = torch.ones(4, device="cuda"), torch.empty(4).pin_memory()
    kept.copy_(x)
    kept.add_(1)
    x.cpu().sum()


@clean
def two_pinned_buffers_in_turn() -> None:
    buffers = [torch.empty(4).pin_memory() for _ in range(2)]
    copied = [torch.cuda.Event() for _ in buffers]
    for step in range(4):
        copied[step % 2].synchronize()
        buffers[step % 2].fill_(step)
        buffers[step % 2].to("cuda", non_blocking=True)
        copied[step % 2].record()


@clean
def memory_of_the_host_that_is_not_pinned() -> None:
    batch = torch.ones(4)
    batch.to("cuda", non_blocking=True)
    batch.add_(1)


@clean
def a_step_of_training() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        net(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@clean
def forward_on_a_side_stream_and_backward() -> None:
    side, weight = torch.cuda.Stream(), torch.ones(4, device="cuda", requires_grad=True)
    side.wait_stream(default())
    with torch.cuda.stream(side):
        loss = (weight * 2).sum()
    loss.backward()
    assert weight.grad is not None
    weight.grad.sum()


@clean
def a_step_of_data_parallel() -> None:
    net = nn.DataParallel(nn.Linear(4, 1).cuda(), [0, 1])
    net(torch.ones(4, 4, device="cuda")).sum().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()


@clean
def tensors_go_from_gpu_to_gpu() -> None:
    x = torch.ones(4, device="cuda:0")
    y = x.to("cuda:1")
    x.add_(1)
    y.add_(1)
    x.copy_(y)
    x.sum()


@clean
def collectives_that_are_waited_for() -> None:
    x = torch.ones(4, device="cuda")
    dist.all_reduce(x)
    x.mul_(2)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    x.sum()


@clean
def a_step_of_ddp() -> None:
    net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        net(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@clean
def a_step_of_fsdp2() -> None:
    from torch.distributed.fsdp import fully_shard

    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)).cuda()
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        net(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@clean
def a_thread_fills_the_next_buffer() -> None:
    buffer = torch.empty(4)
    filler = threading.Thread(target=buffer.fill_, args=(1,))
    filler.start()
    filler.join()
    buffer.pin_memory().to("cuda", non_blocking=True).sum()
