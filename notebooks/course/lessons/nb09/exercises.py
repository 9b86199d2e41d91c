"""Exercises of notebook 09: which rank was first, what a restart repeats."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case, Exercise, Mistake

Report = tuple[int, int, str]  # rank, exit code, last line

FOLLOWERS = (
    (1, "RuntimeError: Connection closed by peer [10.0.0.2]:38032"),
    (1, "RuntimeError: Read error [10.0.0.2]:25266: Connection reset by peer"),
    (-15, "step 3"),
    (-6, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)"),
    (1, "socketProgress: Connection closed by remote peer 10.0.0.2<41234>"),
    (1, "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."),
    (1, "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"),
    (1, "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined."),
)
CAUSES = (
    (-9, "step 3"),
    (-11, "step 3"),
    (1, "FloatingPointError: the loss is nan"),
    (1, "torch.OutOfMemoryError: CUDA out of memory."),
    (3, "no such file: train.json"),
    (1, "RuntimeError: CUDA error: device-side assert triggered"),
    (
        -6,
        "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
    ),
    (1, "ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out."),
)


def first_to_fail(reports: Sequence[Report]) -> int:
    lost_a_peer = "by peer|by remote peer|RemoteError|Failed to recv|operation timeout|waiting for clients"
    for rank, code, line in reports:
        if code not in (0, -15) and not re.search(lost_a_peer, line):
            return rank
    raise ValueError("every rank only followed")


def _the_first_listed(reports: Sequence[Report]) -> int:
    return reports[0][0]


def _with_a_traceback(reports: Sequence[Report]) -> int:
    return next((rank for rank, code, _ in reports if code == 1), reports[0][0])


def _killed_by_a_signal(reports: Sequence[Report]) -> int:
    return next((rank for rank, code, _ in reports if code < 0), reports[0][0])


def _lowest_code(reports: Sequence[Report]) -> int:
    return min(reports, key=lambda report: report[1])[0]


def _in_the_words_of_gloo(reports: Sequence[Report]) -> int:
    """Every line that has the word time-out is struck out, and of lost connections those that gloo reports."""
    struck = ("by peer", "timeout", "timed out")
    return next(rank for rank, code, line in reports if code != -15 and not any(w in line.lower() for w in struck))


def _by_code(reports: Sequence[Report]) -> int:
    """Every SIGABRT is struck out."""
    return next(rank for rank, code, line in reports if code not in (-6, -15) and "by peer" not in line)


def _the_odd_one_out(reports: Sequence[Report]) -> int:
    lines = [line for _, _, line in reports]
    return min(reports, key=lambda report: lines.count(report[2]))[0]


def _report_cases(random: Random) -> Sequence[Case]:
    """Every cause and every follower at some place; ranks are in no order, as logs are collected."""

    def run(cause: tuple[int, str], place: int, followers: Sequence[tuple[int, str]]) -> Case:
        ends = [*followers[:place], cause, *followers[place:]]
        ranks = random.sample(range(len(ends)), len(ends))
        return Case(([(rank, code, line) for rank, (code, line) in zip(ranks, ends, strict=True)],))

    closed, _, ended, timed_out, *_ = FOLLOWERS
    cases = [
        run(CAUSES[0], 1, [closed, closed]),
        run(CAUSES[2], 1, [ended]),
        run(CAUSES[1], 2, [closed, ended, timed_out]),
        run(CAUSES[4], 3, [timed_out, closed, closed]),
    ]
    for k in range(24):
        followers = [FOLLOWERS[k % len(FOLLOWERS)], *random.choices(FOLLOWERS, k=random.randint(0, 5))]
        cases.append(run(CAUSES[k // 3], random.randint(0, len(followers)), followers))
    return cases


def repeated_steps(killed_in: int, save_every: int) -> list[int]:
    saved = (killed_in - 1) // save_every * save_every
    return list(range(saved + 1, killed_in))


def _from_the_saved_step(killed_in: int, save_every: int) -> list[int]:
    saved = (killed_in - 1) // save_every * save_every
    return list(range(saved, killed_in))


def _from_the_saved_step_or_the_first(killed_in: int, save_every: int) -> list[int]:
    return [step for step in _from_the_saved_step(killed_in, save_every) if step]


def _the_killed_one_too(killed_in: int, save_every: int) -> list[int]:
    return [*repeated_steps(killed_in, save_every), killed_in]


def _unfinished_checkpoint(killed_in: int, save_every: int) -> list[int]:
    return list(range(killed_in // save_every * save_every + 1, killed_in))


def _same_steps(given: Any, expected: list[int]) -> bool:
    """A list, or something else with the same numbers in it."""
    return [*given] == expected


def _kill_cases(random: Random) -> Sequence[Case]:
    fixed = [(8, 5), (10, 5), (11, 5), (3, 5), (1, 5), (7, 1)]
    return [Case(pair) for pair in [*fixed, *((random.randint(1, 60), random.randint(1, 12)) for _ in range(20))]]


EXERCISES = (
    Exercise(
        key="09.first_to_fail",
        task="`reports` has (rank, exit code, last line of its log) for each rank of a failed run. Return the rank "
        "that the others followed.",
        reference=first_to_fail,
        cases=_report_cases,
        hints=(
            "Do not look for the culprit. Strike out the ranks that only followed; one remains.",
            "Three kinds follow: ended by torchrun (-15), left by a peer (in the words of gloo, of NCCL or of the "
            "store), tired of waiting for one ('operation timeout', 'waiting for clients').",
            "`code not in (0, -15) and not re.search(words, line)`, with `words = 'by peer|by remote peer|RemoteError|"
            "Failed to recv|operation timeout|waiting for clients'`",
        ),
        mistakes=(
            Mistake(
                "the first in the list",
                "this is the first report of the list, or the last: the log that one happens to read first.",
                "pytorch/pytorch issue 113546, 2023, asks for a report that names the rank which crashed",
                answers=(_the_first_listed, lambda reports: reports[-1][0], lambda reports: min(reports)[0]),
            ),
            Mistake(
                "the one with a traceback",
                "this is a rank that raised. A rank that was killed cannot raise, and those it leaves behind do.",
                "torch-spyre/torch-spyre pull request 3835, 2026: the log that was kept was not the one of the cause",
                answers=(_with_a_traceback,),
            ),
            Mistake(
                "any signal",
                "this is a rank that a signal ended. torchrun ends the healthy ones with SIGTERM, and NCCL's "
                "watchdog ends those that waited with SIGABRT.",
                "huggingface/accelerate pull request 4139, 2026",
                answers=(_killed_by_a_signal, _lowest_code),
            ),
            Mistake(
                "the words of gloo",
                "this is what a function gives that knows a lost peer by `by peer` and a rank that waited by the word "
                "time-out. NCCL and the store have other words for a lost peer, and a server that is not a rank at all "
                "can time out as well.",
                answers=(_in_the_words_of_gloo,),
            ),
            Mistake(
                "every SIGABRT",
                "this is what a function gives that strikes out each -6. The watchdog ends a rank that waited in vain, "
                "and it also ends one whose own GPU has failed: read what follows the word watchdog.",
                "vllm-project/vllm issue 17098, 2025",
                answers=(_by_code,),
            ),
            Mistake(
                "the odd one out",
                "this is the report whose line no other rank has. A rank that followed can be the only one of its "
                "kind.",
                answers=(_the_odd_one_out,),
            ),
        ),
    ),
    Exercise(
        key="09.repeated_steps",
        task="A checkpoint is written after every `save_every` steps. A rank is killed in step `killed_in`, before the "
        "step is finished. Return the steps that were finished and are done once more after the restart.",
        reference=repeated_steps,
        cases=_kill_cases,
        agree=_same_steps,
        hints=(
            "Which is the last step that was finished, and which the last that was saved?",
            "Step `killed_in - 1` was finished; the last multiple of `save_every` up to it was saved.",
            "`saved = (killed_in - 1) // save_every * save_every`, and the first step after it is `saved + 1`.",
        ),
        mistakes=(
            Mistake(
                "the saved step again",
                "these steps begin with the one that is in the checkpoint. Its update would be applied twice.",
                "thinking-machines-lab/tinker-cookbook issue 935, 2026; deepset-ai/FARM pull request 279, 2020",
                answers=(_from_the_saved_step, _from_the_saved_step_or_the_first),
            ),
            Mistake(
                "a checkpoint that is not there",
                "this counts on the checkpoint of the step in which the rank was killed. It was not written.",
                "AI-Hypercomputer/maxtext pull request 5260, 2026, restored an unfinished one",
                answers=(_unfinished_checkpoint,),
            ),
            Mistake(
                "the killed step",
                "this list ends with the step in which the rank was killed. It was not finished, so nothing of it is "
                "repeated.",
                answers=(_the_killed_one_too,),
            ),
        ),
    ),
)
