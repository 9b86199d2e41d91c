"""Races between streams: found with both lines and the repair, and not found where there are none."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from vgpu_races import CLEAN, RACY

import vgpu

PROGRAM = """
import multiprocessing, subprocess, sys
import torch

def race():
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    with torch.cuda.stream(side):
        x.add_(1)

if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        child = multiprocessing.get_context("spawn").Process(target=race)
        child.start()
        child.join()
        assert child.exitcode == 0
    elif sys.argv[1] == "subprocess":
        subprocess.run([sys.executable, __file__, "here"], check=True)
    else:
        race()
    print("ended")
"""
TESTS = """
import torch

def test_racy():
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    with torch.cuda.stream(side):
        x.add_(1)

def test_clean():
    torch.zeros(4, device="cuda").add_(1)
"""


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with vgpu.virtual_gpus(2):
        yield


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one rank: its collectives run on a stream of their own, as in a larger one."""
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("name", RACY)
def test_a_race_is_found(name: str, group: None) -> None:
    with pytest.raises(vgpu.RaceError, match="race: ") as found, vgpu.races():
        RACY[name](False)
    said = str(found.value)
    assert said.count("vgpu_races.py:") >= 2 and "  repair: " in said


@pytest.mark.parametrize("name", RACY)
def test_its_repair_is_not_called_a_race(name: str, group: None) -> None:
    with vgpu.races():
        RACY[name](True)


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_program_is_not_called_racy(name: str, group: None) -> None:
    with vgpu.races():
        CLEAN[name]()


def test_values_are_computed_as_without_the_watch() -> None:
    x = torch.arange(4.0, device="cuda")
    with vgpu.races():
        watched = (x * 2).cumsum(0).tolist()
    assert watched == (x * 2).cumsum(0).tolist() == [0.0, 2.0, 6.0, 12.0]


def test_all_races_can_be_collected_instead() -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    with vgpu.races(error=False) as found:
        x.add_(1)
        with torch.cuda.stream(side):
            x.sum()
            x.mul_(2)
        x.sum()
    assert len(found) == 3 and all(isinstance(one, vgpu.RaceError) for one in found)


def test_tensors_of_a_racy_program_are_freed_though_somebody_keeps_a_function_of_the_block() -> None:
    vgpu.fresh_memory()  # what an earlier test left would be collected in the middle of this one
    x = torch.zeros(4, device="cuda")
    held = torch.cuda.memory_allocated()
    with contextlib.suppress(vgpu.RaceError), vgpu.races():
        kept = torch.Tensor.tolist  # as torch._dynamo keeps it, where it is imported in the block
        RACY["a_side_stream_reads_what_the_default_stream_writes"](False)
    gc.collect()
    assert torch.cuda.memory_allocated() == held
    assert kept is not torch.Tensor.tolist and kept(x.cpu()) == [0.0] * 4


def test_the_error_names_the_tensor_the_streams_and_the_repair() -> None:
    with pytest.raises(vgpu.RaceError) as found, vgpu.races():
        RACY["a_side_stream_reads_what_the_default_stream_writes"](False)
    said = str(found.value)
    for part in ("add_ writes float32 (4,) on cuda:0, by the default stream of cuda:0", "sum reads", "wait_stream"):
        assert part in said, said


class TestArrays:
    """NumPy writes to pinned memory, of which no operator tells: the detector compares what is there."""

    @pytest.fixture
    def frames(self) -> torch.Tensor:
        pytest.importorskip("numpy", reason="the array is one of NumPy")
        return torch.full((2, 4), torch.nan).pin_memory()

    def test_a_write_during_a_copy_is_found_when_the_host_waits(self, frames: torch.Tensor) -> None:
        with pytest.raises(vgpu.RaceError, match="through an array of NumPy") as found, vgpu.races():
            array = frames.numpy()
            frames.to("cuda", non_blocking=True)
            array[1] = 1
            torch.cuda.synchronize()
        assert "reads float32 (2, 4) on the host" in str(found.value) and "synchronize()" in str(found.value)

    def test_writes_during_copies_to_the_host_are_found_at_the_end_of_the_block(self, frames: torch.Tensor) -> None:
        values = torch.ones(2, 4, device="cuda")
        with vgpu.races(error=False) as found:
            array = frames.numpy()
            for row, value in zip(frames, values, strict=True):
                row.copy_(value, non_blocking=True)
            array[:] = 2
        assert len(found) == 2 and all("copy_ writes float32 (4,) on the host" in str(one) for one in found)

    def test_what_was_waited_for_and_what_is_not_copied_may_be_written(self, frames: torch.Tensor) -> None:
        with vgpu.races():
            array, copied = frames.numpy(), torch.cuda.Event()
            frames[:, :2].to("cuda", non_blocking=True)
            copied.record()
            array[:, 2:] = 3
            copied.synchronize()
            array[:] = 4

    def test_later_operators_on_the_stream_may_write_it(self, frames: torch.Tensor) -> None:
        with vgpu.races():
            array = frames.numpy()
            on_gpu = frames.to("cuda", non_blocking=True)
            frames.copy_(on_gpu.nan_to_num(1), non_blocking=True)
            torch.cuda.synchronize()
        assert array.tolist() == [[1.0] * 4] * 2


def test_after_the_block_nobody_watches() -> None:
    def replaced() -> list[object]:
        return [
            torch.Tensor.numpy,
            torch.cuda.Event.record,
            torch.cuda.synchronize,
            dist.Work.wait,
            torch.Tensor.tolist,
        ]

    before = replaced()
    with pytest.raises(vgpu.RaceError), vgpu.races():
        RACY["two_streams_write_one_buffer"](False)
    assert replaced() == before
    RACY["two_streams_write_one_buffer"](False)


def test_a_watch_within_a_watch_is_refused() -> None:
    with vgpu.races(), pytest.raises(RuntimeError, match="cannot be nested"), vgpu.races():
        pass


def test_a_program_of_the_command_line_ends_at_its_race(tmp_path: Path) -> None:
    """Its children are watched, too: a process of multiprocessing, and a program of subprocess."""
    (tmp_path / "program.py").write_text(PROGRAM)
    for argument in ("here", "spawn", "subprocess"):
        done = run(["-m", "vgpu", "--gpus", "1", "--races", "program.py", argument], tmp_path)
        assert "vgpu.racing.report.RaceError: race:" in done.stderr and "ended" not in done.stdout, done.stderr
    done = run(["-m", "vgpu", "--gpus", "1", "program.py", "here"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_a_test_with_a_race_fails_where_the_option_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    done = run(["-m", "pytest", "-q", "-p", "vgpu", "--vgpus", "1", "--vgpus-races", "test_it.py"], tmp_path)
    assert "1 failed, 1 passed" in done.stdout and "RaceError: race:" in done.stdout, done.stdout
    done = run(["-m", "pytest", "-q", "-p", "vgpu", "--vgpus", "1", "test_it.py"], tmp_path)
    assert "2 passed" in done.stdout, done.stdout
    done = run(["-m", "pytest", "-q", "-p", "vgpu", "--vgpus-races", "test_it.py"], tmp_path)
    assert done.returncode == 4 and "--vgpus-races needs --vgpus N" in done.stderr, done.stderr


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VGPUS", "PYTEST"))}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=kept, capture_output=True, text=True, timeout=240
    )
