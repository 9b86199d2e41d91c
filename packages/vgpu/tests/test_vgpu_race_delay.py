"""Streams that are as late as they may be: wrong numbers where there is a race, the same ones where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import vgpu_races
from races import clean, racy
from races.values import values_of
from test_vgpu_races import TESTS, run
from torch import nn
from torch.distributed.fsdp import fully_shard

import vgpu

# In these the wrong order gives no other numbers: additions to one column, a copy that is made again before somebody
# reads it, and sums over one rank, one of which nobody reads.
SAME = (
    racy.overlapping_columns,
    racy.pinned_overwritten,
    racy.reduced_on_side_and_freed,
    vgpu_races.a_reduced_tensor_is_read_before_the_work_is_waited_for,
)
RACY = [*racy.PROGRAMS, *vgpu_races.RACY.values()]
# One program keeps memory that nobody has written, and such numbers are not the same twice.
CLEAN = [one for one in clean.PROGRAMS if one is not clean.reserved_here_and_filled_there]
CLEAN += [*vgpu_races.CLEAN.values()]


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """Two GPUs, and a process group of one rank, whose collectives run on a stream of their own."""
    with vgpu.virtual_gpus(2):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        yield
        dist.destroy_process_group()


def delayed(program: Callable[..., None], *args: object) -> list:
    with vgpu.races(delay=True):
        return values_of(program, *args)


@pytest.mark.parametrize("program", [one for one in RACY if one not in SAME], ids=lambda program: program.__name__)
def test_a_race_gives_wrong_numbers(program: Callable[[bool], None]) -> None:
    right = repr(values_of(program, False))
    assert repr(delayed(program, False)) != right
    assert repr(delayed(program, False)) != right  # not by chance


@pytest.mark.parametrize("program", RACY, ids=lambda program: program.__name__)
def test_the_repaired_program_gives_its_numbers(program: Callable[[bool], None]) -> None:
    assert repr(delayed(program, True)) == repr(values_of(program, True))


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.__name__)
def test_a_clean_program_gives_its_numbers(program: Callable[[], None]) -> None:
    assert repr(delayed(program)) == repr(values_of(program))


def missing_wait() -> torch.Tensor:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    with torch.cuda.stream(side):
        x.add_(1)
    return x + 1


@pytest.mark.parametrize("read", [lambda x: x.tolist(), str, lambda x: x.cpu().tolist(), lambda x: x.sum().item()])
def test_whoever_reads_sees_late_values(read: Callable[[torch.Tensor], object]) -> None:
    right = read(missing_wait())
    with vgpu.races(delay=True) as found:
        wrong = read(missing_wait())
    assert str(wrong) != str(right) and "nan" not in str(right)
    assert found and all(isinstance(one, vgpu.RaceError) for one in found)


def test_late_values_stay_when_the_block_ends() -> None:
    with vgpu.races(delay=True):
        x = torch.ones(4, device="cuda") * 2
        wrong = missing_wait()
    assert x.tolist() == [2.0] * 4 and wrong.tolist() == [1.0] * 4


def test_kernels_draw_the_same_numbers() -> None:
    def drawn() -> list[float]:
        torch.manual_seed(0)
        return [*nn.functional.dropout(torch.rand(8, device="cuda")).tolist(), *torch.randn(8, device="cuda").tolist()]

    right = drawn()
    with vgpu.races(delay=True):
        assert drawn() == right


def training(kind: str) -> list[float]:
    torch.manual_seed(0)
    net: nn.Module = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 1)).cuda()
    if kind == "fsdp2":
        for layer in net.children():
            fully_shard(layer)
        fully_shard(net)
    else:
        net = nn.parallel.DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        loss = net(torch.randn(4, 8, device="cuda")).pow(2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_trainings_on_two_ranks_have_the_same_losses(kind: str) -> None:
    dist.destroy_process_group()
    right = vgpu.ranks(2)(training)(kind)
    with vgpu.races(delay=True) as found:
        assert vgpu.ranks(2)(training)(kind) == right
    assert found == []
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)


def test_a_test_and_a_program_find_wrong_numbers_where_an_option_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        TESTS.replace("x.add_(1)", "y = x.add_(1)\n    assert (y + 1).tolist() == [2] * 4", 1)
    )
    done = run(["-m", "pytest", "-q", "-p", "vgpu", "--vgpus", "1", "--vgpus-delay", "test_it.py"], tmp_path)
    assert "1 failed, 1 passed" in done.stdout and "AssertionError" in done.stdout, done.stdout
    program = "import torch; s = torch.cuda.Stream(); s.__enter__(); x = torch.ones(1, device='cuda'); s.__exit__(); "
    done = run(["-m", "vgpu", "--gpus", "1", "--delay", "-c", program + "print((x + 1).item())"], tmp_path)
    assert done.stdout == "nan\n", done.stderr
