"""The differential tester finds faults that are planted, and none in the same programs without them."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from differential import mutants, processes, ranks, run, threads
from differential.__main__ import is_rounding, judge, main
from differential.draw import draw
from differential.program import Program
from differential.record import Record

import vgpu

SEEDS, MORE = 60, 300  # the first must be equal; a planted fault has more programs to show in
PROGRAMS = [draw(seed) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def references() -> list[Record]:
    """What the programs record on the plain CPU."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    found = run.on_cpu(PROGRAMS)
    torch.set_num_threads(before)
    return found


def test_the_first_programs_are_equal(references: list[Record]):
    records = run.on_gpus(PROGRAMS)
    for program, expected, found in zip(PROGRAMS, references, records, strict=True):
        assert not judge((program, expected, [found])), f"python -m differential --seed {program.seed}"
    assert sum(len(record.values) for record in records) > 50 * SEEDS
    assert sum(bool(record.raised) for record in references) <= SEEDS // 20, "programs that end early say little"


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_planted_fault_is_found(name: str, references: list[Record]):
    shows_in = mutants.MUTANTS[name].shows_in
    for seed in range(MORE):
        program = draw(seed)
        if shows_in and not shows_in & program.pieces:
            continue  # nothing in it could meet this fault
        expected = references[seed] if seed < SEEDS else run.on_cpu([program])[0]
        with mutants.planted(name):
            (found,) = run.on_gpus([program])
        outcome = program, expected, [found]
        if judge(outcome) and not is_rounding(outcome):
            return
    pytest.fail(f"none of {MORE} programs has found it")


@pytest.mark.parametrize("seed", [101656, 114379], ids=["a bias before batch norm", "bfloat16"])
def test_a_difference_that_the_cpu_shows_alone_is_rounding(seed: int):
    program = draw(seed)
    (expected,), (found,) = run.on_cpu([program]), run.on_gpus([program])
    assert judge((program, expected, [found])) and is_rounding((program, expected, [found]))
    name = next(name for name, value in found.values.items() if name.endswith("weight") and value is not None)
    found.values[name] = found.values[name] * 1.1
    assert not is_rounding((program, expected, [found])), "ten times what the CPU shows alone is more than rounding"


def test_a_program_is_plain_python_that_its_seed_reproduces():
    command = "from differential import draw, ranks; print(draw.draw(3)); print(ranks.draw(3, 2))"
    folder = Path(__file__).parents[1] / "tools"
    again = subprocess.run([sys.executable, "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    assert again.stdout == f"{draw(3)}\n{ranks.draw(3, 2)}\n"
    assert "vgpu" not in str(draw(3)).replace("python -m vgpu", "")


def test_the_command_prints_the_program_of_a_seed_and_says_what_differs(capsys: pytest.CaptureFixture[str]):
    before = torch.get_num_threads()
    try:
        assert main(["--seed", "3"]) == 0
        assert str(draw(3)) in (printed := capsys.readouterr().out) and "1 programs" in printed
        assert main(["--from", "0", "--count", "3", "--stop", "--mutant", "products are rounded to float32"]) == 1
        assert "seed 0: " in capsys.readouterr().out
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("command", [["PROGRAM", "cpu"], ["-m", "vgpu", "--gpus", "2", "PROGRAM", "cuda"]])
def test_a_program_runs_without_the_tester(command: list[str], tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(str(draw(3)), encoding="utf-8")
    arguments = [str(program) if word == "PROGRAM" else word for word in command]
    done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "2 loss tensor(" in done.stdout and ("device='cuda:" in done.stdout) == ("cuda" in command)


def first_with(piece: str) -> Program:
    """The first program for two ranks that has this piece."""
    return next(program for seed in range(100) if piece in (program := ranks.draw(seed, 2)).pieces)


@pytest.mark.long
def test_two_ranks_are_equal_to_one_process_and_planted_faults_are_found():
    pytest.importorskip("numpy", reason="PyTorch's collectives of objects need it")
    chosen = [(name, first_with(min(one.shows_in))) for name, one in mutants.RANK_MUTANTS.items()]
    others = [("", first_with(way)) for way in ("FSDP1", "tensor parallel")]
    with processes.Ranks(2) as group:
        for name, program in [*chosen, *others]:
            (expected,) = processes.references([program])
            found = processes.on_ranks(group, program)
            assert not judge((program, expected, found)), f"python -m differential --ranks 2 --seed {program.seed}"
            if name:
                assert judge((program, expected, processes.on_ranks(group, program, name))), name


# Rank 1 begins its program while rank 0 is in its own, and ends it after rank 0 has.
OVERLAPPING = """
import time
import torch
import torch.distributed as dist

if dist.get_rank() == 1:
    dist.barrier()

def program(rank, ranks, gpu, record):
    if rank == 0:
        dist.barrier()
    dist.barrier()
    time.sleep(0.2 * rank)
    torch.manual_seed(5)
    record("drawn", torch.rand(3, device=gpu))
"""


def test_ranks_that_are_threads_leave_the_seeds_as_they_were():
    seed, before = torch.manual_seed, torch.initial_seed()
    first, second = threads.on_threads(Program(0, 2, frozenset(), True, OVERLAPPING))
    assert not first.raised and torch.equal(first.values["drawn"], second.values["drawn"])
    assert torch.manual_seed is seed and torch.initial_seed() == before


def test_the_tester_leaves_nothing_behind():
    original = mutants.set_data._hand_on
    with pytest.raises(RuntimeError, match="stop"), mutants.planted("a gradient counts twice after a move"):
        assert mutants.set_data._hand_on is not original
        raise RuntimeError("stop")
    assert mutants.set_data._hand_on is original and not vgpu.is_enabled()
