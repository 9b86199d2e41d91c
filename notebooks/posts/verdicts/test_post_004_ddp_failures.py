"""Verdicts on post 004, "Pytorch 相关问题及学习": its lines on training with several machines."""

import pytest
from verdict import verdict

from course.workers import elastic

NOTEBOOK = "08_ddp_that_goes_wrong"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on two "machines", a rank of which is killed: exit codes, steps of each rank, weights, last step."""
    folder = tmp_path_factory.mktemp("machines")
    codes = elastic.two_machines(folder)
    lives = [elastic.steps_taken(folder, rank) for rank in (0, 1)]
    return codes, lives, *elastic.load(folder / "checkpoint.pt")


@verdict(
    "004",
    "training on several machines",
    claim="Distributed training is of two kinds: one machine with several GPUs, and several machines.",
    ruling="right",
    because="The kinds differ in the command, not in the program: two agents with a rank each give the weights that "
    "one process computes from both ranks' gradients.",
    notebook=NOTEBOOK,
)
def test_two_machines_compute_what_one_process_does(run):
    codes, _, weights, steps = run
    total = sum(elastic.gradient(rank, step) for rank in (0, 1) for step in range(1, steps + 1))
    assert codes == [0, 0] and steps == elastic.STEPS
    assert weights.allclose(-elastic.LR * total / 2, rtol=1e-10, atol=1e-12)


@verdict(
    "004",
    "training on several machines",
    claim="There is no code for several machines yet.",
    ruling="incomplete",
    because="None is needed: a program that torchrun starts on one machine runs on several, with `--nnodes` and one "
    "`--rdzv-endpoint`. What is needed is a checkpoint, since a rank that dies restarts them all: at most the steps "
    "since the last one are done again.",
    notebook=NOTEBOOK,
)
def test_restart_repeats_at_most_the_steps_since_the_checkpoint(run):
    _, lives, _, _ = run
    for first, second in lives:
        assert first == [*range(1, elastic.KILLED_AT)]
        assert second == [*range(elastic.SAVE_EVERY + 1, elastic.STEPS + 1)]
        assert len(set(first) & set(second)) < elastic.SAVE_EVERY
