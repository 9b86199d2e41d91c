"""The detector of races on programs that were written without it: see races/racy.py, clean.py and unseen.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch.distributed as dist
from races import clean, racy, unseen

import vgpu

RACY = [*racy.PROGRAMS, *unseen.PROGRAMS]


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """Two GPUs, and a process group of one rank, whose collectives run on a stream of their own."""
    with vgpu.virtual_gpus(2):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        yield
        dist.destroy_process_group()


@pytest.mark.parametrize("program", RACY, ids=lambda program: program.__name__)
def test_a_race_is_found(program: Callable[[bool], None]) -> None:
    with pytest.raises(vgpu.RaceError, match="repair: ") as found, vgpu.races():
        program(repaired=False)
    assert str(found.value).count(f" {Path(program.__code__.co_filename).name}:") >= 2


@pytest.mark.parametrize("program", RACY, ids=lambda program: program.__name__)
def test_the_repaired_program_is_clean(program: Callable[[bool], None]) -> None:
    with vgpu.races(error=False) as found:
        program(repaired=True)
    assert found == []


@pytest.mark.parametrize("program", clean.PROGRAMS, ids=lambda program: program.__name__)
def test_a_clean_program_is_clean(program: Callable[[], None]) -> None:
    with vgpu.races(error=False) as found:
        program()
    assert found == []
