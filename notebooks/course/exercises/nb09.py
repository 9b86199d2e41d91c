"""Exercises of notebook 09: which rank was first, what a restart repeats."""

from collections.abc import Sequence
from random import Random

from course.learn.exercise import Case, Exercise, Mistake

Report = tuple[int, int, str]  # rank, exit code, last line

FOLLOWERS = (
    (1, "RuntimeError: Connection closed by peer [10.0.0.2]:38032"),
    (1, "RuntimeError: Read error [10.0.0.2]:25266: Connection reset by peer"),
    (-15, "step 3"),
    (-6, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)"),
)
CAUSES = (
    (-9, "step 3"),
    (-11, "step 3"),
    (1, "FloatingPointError: the loss is nan"),
    (1, "torch.OutOfMemoryError: CUDA out of memory."),
    (3, "no such file: train.json"),
)


def first_to_fail(reports: Sequence[Report]) -> int:
    for rank, code, line in reports:
        ended_by_torchrun = code == -15
        waited_in_vain = "by peer" in line or "timeout" in line
        if code != 0 and not ended_by_torchrun and not waited_in_vain:
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


def _report_cases(random: Random) -> Sequence[Case]:
    def run(cause: tuple[int, str], place: int, followers: Sequence[tuple[int, str]]) -> Case:
        ends = [*followers[:place], cause, *followers[place:]]
        return Case(([(rank, code, line) for rank, (code, line) in enumerate(ends)],))

    closed, _, ended, timed_out = FOLLOWERS
    cases = [
        run(CAUSES[0], 1, [closed]),
        run(CAUSES[2], 1, [ended]),
        run(CAUSES[1], 2, [closed, ended, timed_out]),
        run(CAUSES[4], 3, [timed_out, closed, closed]),
    ]
    for _ in range(20):
        followers = [random.choice(FOLLOWERS) for _ in range(random.randint(1, 6))]
        cases.append(run(random.choice(CAUSES), random.randint(0, len(followers)), followers))
    return cases


def repeated_steps(killed_in: int, save_every: int) -> list[int]:
    saved = (killed_in - 1) // save_every * save_every
    return list(range(saved + 1, killed_in))


def _from_the_saved_step(killed_in: int, save_every: int) -> list[int]:
    saved = (killed_in - 1) // save_every * save_every
    return list(range(max(saved, 1), killed_in))


def _unfinished_checkpoint(killed_in: int, save_every: int) -> list[int]:
    return list(range(killed_in // save_every * save_every + 1, killed_in))


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
            "Three kinds follow: ended by torchrun (-15), left by a peer ('by peer'), tired of waiting ('timeout').",
            "`code != 0 and code != -15 and 'by peer' not in line and 'timeout' not in line`",
        ),
        mistakes=(
            Mistake(
                "the first in the list",
                "you took the first report. That is the log that you happen to read first.",
                "pytorch/pytorch issue 113546, 2023, asks for a report that names the rank which crashed",
                answers=(_the_first_listed,),
            ),
            Mistake(
                "the one with a traceback",
                "you took the rank that raised. A rank that was killed cannot raise, and those it leaves behind do.",
                "torch-spyre/torch-spyre pull request 3835, 2026: the log that was kept was not the one of the cause",
                answers=(_with_a_traceback,),
            ),
            Mistake(
                "any signal",
                "you took the first rank that a signal ended. torchrun ends the healthy ones with SIGTERM, and NCCL's "
                "watchdog ends those that waited with SIGABRT.",
                "huggingface/accelerate pull request 4139, 2026",
                answers=(_killed_by_a_signal, _lowest_code),
            ),
        ),
    ),
    Exercise(
        key="09.repeated_steps",
        task="A checkpoint is written after every `save_every` steps. A rank is killed in step `killed_in`, before the "
        "step is finished. Return the steps that were finished and are done once more after the restart.",
        reference=repeated_steps,
        cases=_kill_cases,
        hints=(
            "Which is the last step that was finished, and which the last that was saved?",
            "Step `killed_in - 1` was finished; the last multiple of `save_every` up to it was saved.",
            "`saved = (killed_in - 1) // save_every * save_every`, and the first step after it is `saved + 1`.",
        ),
        mistakes=(
            Mistake(
                "the saved step again",
                "you begin with the step that is in the checkpoint. Its update would be applied twice.",
                "thinking-machines-lab/tinker-cookbook issue 935, 2026; deepset-ai/FARM pull request 279, 2020",
                answers=(_from_the_saved_step,),
            ),
            Mistake(
                "a checkpoint that is not there",
                "you count on the checkpoint of the step in which the rank was killed. It was not written.",
                "AI-Hypercomputer/maxtext pull request 5260, 2026, restored an unfinished one",
                answers=(_unfinished_checkpoint,),
            ),
        ),
    ),
)
