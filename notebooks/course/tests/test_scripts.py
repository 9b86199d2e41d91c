"""The programs of notebooks/scripts: each under plain torchrun, and equal results on the CPU and on virtual GPUs.

torchrun takes most of its time to import torch in every process. So each program meets it once, on two virtual GPUs;
its other runs are on ranks that are copies of one process that has imported torch.
"""

import contextlib
import io
import multiprocessing
import os
import re
import runpy
import subprocess
import sys

import pytest
import torch

import vgpu
from course.kit.files import SCRIPTS
from course.kit.ranks import PRELOADED, START
from frcnn_lite.parallel.launch import run_ranks

PROGRAMS = sorted(SCRIPTS.glob("*.py"))
LINES = 60  # a program that a reader copies is read in one go
TRAIN_DDP = SCRIPTS / "train_ddp.py"
TRAIN_FSDP2 = SCRIPTS / "train_fsdp2.py"
TRAIN_TENSOR_PARALLEL = SCRIPTS / "train_tensor_parallel.py"
EPOCH = re.compile(r"epoch (\d): gradient norm (\d+\.\d+), (\d+) of 325 right")


def torchrun(program: object, *arguments: object) -> str:
    """What a program prints on two ranks, with a virtual GPU each."""
    launch = ["-m", "vgpu", "--force", "--gpus", "2", "-m", "torch.distributed.run", "--standalone"]
    command = [sys.executable, *launch, "--nproc-per-node=2", *map(str, (program, *arguments))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def run(ranks: int, device: str, program: object, *arguments: object) -> str:
    """What a program prints on so many ranks; device: "cpu", or "virtual" for a virtual GPU each."""
    if START == "forkserver":
        multiprocessing.set_forkserver_preload(PRELOADED)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run_ranks(as_main, ranks, device, [str(program), *map(str, arguments)], timeout=300, start_method=START)
    return "".join(line.removeprefix("rank 0: ") for line in printed.getvalue().splitlines(keepends=True))


def as_main(device: str, argv: list[str]) -> None:
    """The life of a rank: the program as `python program.py` would run it."""
    if device == "virtual":
        vgpu.enable(int(os.environ["WORLD_SIZE"]), force=True)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a machine with GPUs is to use its CPU
    sys.argv = argv
    runpy.run_path(argv[0], run_name="__main__")


def stopped_after(epochs: int, folder) -> object:
    """The program as if somebody had ended it after so many epochs."""
    shorter = folder / "stopped.py"
    text = TRAIN_DDP.read_text(encoding="utf-8")
    assert text.count("EPOCHS, BATCH = 4, 64") == 1
    shorter.write_text(text.replace("EPOCHS, BATCH = 4, 64", f"EPOCHS, BATCH = {epochs}, 64"), encoding="utf-8")
    return shorter


def test_ddp_gives_equal_results_on_the_cpu_and_on_gpus_with_two_and_four_ranks(tmp_path):
    """The last one goes on with what the one before has saved, on the CPU, after two of four epochs."""
    four = tmp_path / "4.pt"
    said = {
        "cpu": run(2, "cpu", TRAIN_DDP, tmp_path / "cpu 2.pt"),
        "torchrun": torchrun(TRAIN_DDP, tmp_path / "torchrun 2.pt"),
        "four": run(4, "cpu", stopped_after(2, tmp_path), four) + run(4, "virtual", TRAIN_DDP, four),
    }
    assert len(said["cpu"].splitlines()) == 4 and "of 325 right" in said["cpu"]  # one rank prints
    assert said["cpu"] == said["torchrun"] == said["four"]
    kept = [torch.load(tmp_path / name, map_location="cpu") for name in ("cpu 2.pt", "torchrun 2.pt", "4.pt")]
    for other in kept[1:]:
        assert other["epoch"] == kept[0]["epoch"] == 3
        torch.testing.assert_close(other["net"], kept[0]["net"], rtol=1e-4, atol=1e-5)
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.exhaustive
def test_fsdp2_gives_equal_results_on_the_cpu_and_on_gpus_with_two_and_four_ranks(tmp_path):
    """On virtual GPUs two ranks train the first epoch, and four go on with their checkpoint."""
    expected = epochs_of(run(2, "cpu", TRAIN_FSDP2, tmp_path / "two", 2))
    assert [epoch for epoch, _, _ in expected] == [0, 1] and expected[1][2] > 250
    virtual = torchrun(TRAIN_FSDP2, tmp_path / "virtual", 1) + run(4, "virtual", TRAIN_FSDP2, tmp_path / "virtual", 2)
    assert_nearly_equal(epochs_of(virtual), expected)


@pytest.mark.long
def test_fsdp2_gives_equal_results_on_three_and_four_ranks_of_the_cpu(tmp_path):
    """Three do not divide the 64 rows of a step."""
    found = {ranks: epochs_of(run(ranks, "cpu", TRAIN_FSDP2, tmp_path / str(ranks), 2)) for ranks in (2, 3, 4)}
    assert_nearly_equal(found[3], found[2])
    assert_nearly_equal(found[4], found[2])


def epochs_of(said: str) -> list[tuple[float, ...]]:
    """Epoch, norm of the gradient and number of right answers, from what the program printed."""
    return [tuple(map(float, row)) for row in EPOCH.findall(said)]


def assert_nearly_equal(found: list[tuple[float, ...]], expected: list[tuple[float, ...]]) -> None:
    """Equal but for rounding, which may decide one picture of 325."""
    for (epoch, norm, right), (its_epoch, its_norm, its_right) in zip(found, expected, strict=True):
        assert epoch == its_epoch and norm == pytest.approx(its_norm, abs=0.002) and abs(right - its_right) <= 1


@pytest.mark.exhaustive
def test_tensor_parallel_gives_equal_results_on_the_cpu_and_on_gpus_with_two_ranks():
    learned = told_of_tensor_parallel(2, run(2, "cpu", TRAIN_TENSOR_PARALLEL))
    assert told_of_tensor_parallel(2, torchrun(TRAIN_TENSOR_PARALLEL)) == learned
    assert int(re.search(r"epoch 3: (\d+) of 325 right", learned[-1])[1]) > 270


@pytest.mark.long
def test_tensor_parallel_gives_equal_results_with_four_ranks():
    learned = told_of_tensor_parallel(2, run(2, "cpu", TRAIN_TENSOR_PARALLEL))
    for device in ("cpu", "virtual"):
        assert told_of_tensor_parallel(4, run(4, device, TRAIN_TENSOR_PARALLEL)) == learned


def told_of_tensor_parallel(ranks: int, said: str) -> list[str]:
    """The lines of the epochs; the last line tells how much of the weights each rank holds."""
    *epochs, held = said.splitlines()
    assert len(epochs) == 4 and held == f"rank 0 holds {32768 // ranks} of 32768 weights of the two large layers"
    return epochs


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_that_python_starts_without_arguments_trains_on_one_rank(path, tmp_path):
    command = [sys.executable, "-m", "vgpu", "--force", "--gpus", "1", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    *_, last = re.findall(r"epoch (\d): .*?(\d+) of 325 right", ended.stdout)
    assert last[0] == "3" and int(last[1]) > 250


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_is_short_enough_to_be_shown_whole(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES
