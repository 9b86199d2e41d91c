"""Tracebacks end in the program's own line: pytest, a spawned rank and a program that ends show no file of vgpu."""

import subprocess
import sys
import traceback

import pytest
from vgpu_group import free_port

import vgpu

PROGRAM = """
import sys
import torch, torch.multiprocessing as mp

def work(rank):
    {line}

if __name__ == "__main__":
    if sys.argv[1] == "spawned":
        mp.spawn(work, nprocs=1)
    if sys.argv[1] == "process":
        child = mp.get_context("spawn").Process(target=work, args=(0,))
        child.start()
        child.join()
    work(0)
"""
MIXED = 'torch.ones(2, device="cuda:1") + torch.ones(2, device="cuda:0")'
TOO_LARGE = 'torch.empty(10**13, device="cuda")'


def ended(tmp_path, how: str, line: str, **options) -> str:
    """What a program that fails in `line` says at its end."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(line=line))
    command = [sys.executable, "-m", "vgpu", "--gpus", "2", str(path), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options).stderr


def own(text: str) -> list[str]:
    """The lines that name a file of the package, but for the one that has started the program."""
    return [line for line in text.splitlines() if "/vgpu/" in line.replace("\\", "/") and "__main__.py" not in line]


@pytest.mark.parametrize("how", ["spawned", "process", "alone"])
def test_a_program_that_fails_ends_in_its_own_line(tmp_path, how):
    said = ended(tmp_path, how, MIXED)
    assert "found at least two devices, cuda:1 and cuda:0!" in said and f"    {MIXED}" in said
    assert own(said) == []


def test_memory_that_runs_out_says_nothing_of_the_cpus_allocator(tmp_path):
    said = ended(tmp_path, "alone", TOO_LARGE)
    assert "torch.OutOfMemoryError: CUDA out of memory" in said
    assert own(said) == [] and "DefaultCPUAllocator" not in said


def test_who_looks_for_a_fault_of_virtual_gpus_sees_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("VGPUS_TRACEBACK", "full")
    assert own(ended(tmp_path, "alone", MIXED))


def test_pythons_own_module_is_as_before_afterwards():
    before = traceback.TracebackException.__init__, sys.excepthook
    with vgpu.virtual_gpus(1):
        assert traceback.TracebackException.__init__ is not before[0]
    assert (traceback.TracebackException.__init__, sys.excepthook) == before
    with vgpu.virtual_gpus(1):
        sys.excepthook = print  # as torch.distributed and other libraries do
    try:
        assert sys.excepthook is print
    finally:
        sys.excepthook = before[1]


def test_a_collective_that_is_not_answered_ends_in_the_program_too(tmp_path):
    """The error comes out of a `with` block of the package, whose frame in contextlib.py goes as well."""
    wait = "dist.barrier() if rank == 0 else None"
    program = PROGRAM.replace("{line}", f"dist.init_process_group('nccl'); {wait}").replace("nprocs=1", "nprocs=2")
    program = program.replace("import sys", "import os, sys, torch.distributed as dist").replace("    work(0)\n", "")
    join = f"os.environ.update(RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT='{free_port()}')"
    path = tmp_path / "program.py"
    path.write_text(program.replace("    dist.init", f"    {join}; torch.cuda.set_device(rank); dist.init"))
    command = [sys.executable, "-m", "vgpu", "--gpus", "2", str(path), "spawned"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300).stderr
    assert "rank 1 has left: it returned" in said and own(said) == [] and "contextlib.py" not in said


LINES = [MIXED, TOO_LARGE, 'torch.ones(2, device="cuda:7")', "torch.cuda.set_device(9)", "vgpu_ranks(lambda: 1 / 0)()"]


@pytest.mark.parametrize("options", [["--vgpus", "2"], []], ids=["session", "fixture"])
def test_pytest_shows_the_tests_own_line(tmp_path, options):
    tests = [f"def test_{k}(vgpu_ranks):\n    {line}\n" for k, line in enumerate(LINES)]
    block = f"def test_block():\n    with vgpu.virtual_gpus(2):\n        {MIXED}\n"
    (tmp_path / "test_it.py").write_text("\n".join(["import torch, vgpu\n", *tests, block]))
    command = [sys.executable, "-m", "pytest", *options, "-q", "-p", "no:cacheprovider", "test_it.py"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path).stdout
    assert f"{len(LINES) + 1} failed" in said and own(said) == []
    assert [f">       {line}" in said for line in [*LINES[:-1], f"    {MIXED}"]] == [True] * len(LINES)
