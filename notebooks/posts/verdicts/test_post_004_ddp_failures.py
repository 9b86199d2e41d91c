"""Verdicts on post 004, "Pytorch 相关问题及学习": its lines on training with several machines."""

import os
import signal
import sys

import cloudpickle
import pytest
import torch
from torch import distributed
from verdict import verdict

from course.lessons.nb09.torchrun import torchrun

NOTEBOOK = "09_several_machines"
STEPS, SAVE_EVERY, KILLED_AT, LR = 12, 5, 8, 0.1


def gradient(rank, step):
    """What a rank's batch of this step contributes: it depends on these two numbers alone."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(3, generator=generator, dtype=torch.float64)


def train(folder):
    """Go on from the checkpoint, if there is one. Rank 1 is killed in step `KILLED_AT`, once."""
    distributed.init_process_group("gloo")
    rank, file = distributed.get_rank(), folder / "checkpoint.pt"
    weights, done = torch.load(file) if file.exists() else (torch.zeros(3, dtype=torch.float64), 0)
    for step in range(done + 1, STEPS + 1):
        if (rank, step) == (1, KILLED_AT) and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        total = gradient(rank, step)
        distributed.all_reduce(total)
        weights -= LR * total / distributed.get_world_size()
        print(step)
        if step % SAVE_EVERY == 0 or step == STEPS:
            if rank == 0:
                torch.save((weights, step), file.with_suffix(".new"))
                file.with_suffix(".new").replace(file)
            distributed.barrier()  # nobody goes on, and nobody is killed, before the file is there
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on two "machines", a rank of which is killed: exit codes, steps of each life of each rank, weights, last step."""
    folder = tmp_path_factory.mktemp("machines")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks cannot import a test
    done = torchrun(train, folder, machines=2, restarts=1)
    lives = [[[int(line) for line in life if line.isdigit()] for life in rank] for rank in done.said]
    return done.codes, lives, *torch.load(folder / "checkpoint.pt")


@verdict(
    "004",
    "training on several machines",
    claim="Distributed training is of two kinds: one machine with several GPUs, and several machines.",
    ruling="right",
    because="The kinds differ in the command, not in the program: two agents with a rank each give the weights that "
    "one process computes from both ranks' gradients.",
)
def test_two_machines_compute_what_one_process_does(run):
    codes, _, weights, steps = run
    total = sum(gradient(rank, step) for rank in (0, 1) for step in range(1, steps + 1))
    assert codes == [0, 0] and steps == STEPS
    assert weights.allclose(-LR * total / 2, rtol=1e-10, atol=1e-12)


@verdict(
    "004",
    "training on several machines",
    claim="So far the author uses no code for several machines.",
    ruling="incomplete",
    because="None of its own is needed: a program that torchrun starts on one machine runs on several, with `--nnodes` and one "
    "`--rdzv-endpoint`. What is needed is a checkpoint, since a rank that dies restarts them all: at most the steps "
    "since the last one are done again.",
    notebook=NOTEBOOK,
    words="writes checkpoints, and it begins with the last one",
)
def test_restart_repeats_at_most_the_steps_since_the_checkpoint(run):
    _, lives, _, _ = run
    for first, second in lives:
        assert first == [*range(1, KILLED_AT)]
        assert second == [*range(SAVE_EVERY + 1, STEPS + 1)]
        assert len(set(first) & set(second)) < SAVE_EVERY
