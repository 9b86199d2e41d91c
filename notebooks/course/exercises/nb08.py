"""Exercises of notebook 08: as many steps on each rank, one decision for all, what a restart repeats."""

from collections.abc import Sequence
from random import Random

from course.learn.exercise import Case, Exercise, Mistake


def steps_of_each(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    fewest = pictures // world_size
    return -(-fewest // batch_size)


def _own_batches(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    return -(-len(range(rank, pictures, world_size)) // batch_size)


def _batches_of_one_process(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    return -(-pictures // batch_size)


def _deal_cases(random: Random) -> Sequence[Case]:
    fixed = [(9, 2, 2, 0), (9, 2, 2, 1), (8, 2, 2, 0), (3, 1, 4, 0), (3, 1, 4, 3), (1000, 8, 4, 2)]
    drawn = []
    for _ in range(25):
        world_size = random.randint(1, 8)
        drawn.append((random.randint(0, 99), random.randint(1, 6), world_size, random.randrange(world_size)))
    return [Case(arguments) for arguments in [*fixed, *drawn]]


Wishes = Sequence[Sequence[bool]]


def stops_after(wishes: Wishes) -> list[int]:
    world_size = len(wishes[0])
    together = next((step for step, ranks in enumerate(wishes, 1) if any(ranks)), len(wishes))
    return [together] * world_size


def _each_for_itself(wishes: Wishes) -> list[int]:
    ranks = zip(*wishes, strict=True)
    return [next((step for step, wish in enumerate(own, 1) if wish), len(wishes)) for own in ranks]


def _when_all_agree(wishes: Wishes) -> list[int]:
    together = next((step for step, ranks in enumerate(wishes, 1) if all(ranks)), len(wishes))
    return [together] * len(wishes[0])


def _rank_zero_decides(wishes: Wishes) -> list[int]:
    together = next((step for step, ranks in enumerate(wishes, 1) if ranks[0]), len(wishes))
    return [together] * len(wishes[0])


def _wish_cases(random: Random) -> Sequence[Case]:
    fixed = [
        [[False, False], [False, True], [False, False], [True, True]],
        [[False, False], [True, False], [True, True]],
        [[False, False, False]] * 3,
    ]
    drawn = []
    for _ in range(25):
        steps, world_size = random.randint(1, 6), random.randint(2, 4)
        drawn.append([[random.random() < 0.2 for _ in range(world_size)] for _ in range(steps)])
    return [Case((wishes,)) for wishes in [*fixed, *drawn]]


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
        key="08.steps_of_each",
        task="Rank r gets pictures r, r + world_size, ... in batches of batch_size, the last of which may be smaller. "
        "After how many steps does this rank end its epoch, so that no rank is left waiting?",
        reference=steps_of_each,
        cases=_deal_cases,
        hints=(
            "Every rank takes as many steps as the others. Which rank has the fewest pictures?",
            "The last rank has pictures // world_size; nobody has fewer.",
            "Divide that by batch_size, rounded up: `-(-fewest // batch_size)`.",
        ),
        mistakes=(
            Mistake(
                "its own batches",
                "you counted this rank's own batches. Where the pictures do not divide evenly, ranks then differ by a "
                "step, and the longer ones wait.",
                "m2lines/Samudra pull request 557, 2026",
                answers=(_own_batches,),
            ),
            Mistake(
                "the batches of one process",
                "you counted the batches of one process with all pictures. A rank has its share of them only.",
                "mead-ml/mead-baseline pull request 504, 2020, changes this",
                answers=(_batches_of_one_process,),
            ),
        ),
    ),
    Exercise(
        key="08.stops_after",
        task="`wishes[k][r]` says whether rank r wants to stop after step k + 1. Return for each rank the step after "
        "which it stops; without any wish, the last.",
        reference=stops_after,
        cases=_wish_cases,
        hints=(
            "All ranks stop after the same step, or somebody waits.",
            "One rank that has met a NaN is enough: any, not all.",
            "The first step with `any(wishes[k])`, once for each rank.",
        ),
        mistakes=(
            Mistake(
                "each for itself",
                "you let each rank stop when it wants to. The others go on into the next collective, and wait there.",
                "Lightning-AI/pytorch-lightning issue 379, 2019; a barrier before the `break` changes nothing: "
                "talmolab/sleap-nn pull request 471, 2026",
                answers=(_each_for_itself,),
            ),
            Mistake(
                "when all agree",
                "you wait until all ranks want to stop. A NaN on one rank is not a wish of the others.",
                "IBM/ado pull request 41, 2025, stops so",
                answers=(_when_all_agree,),
            ),
            Mistake(
                "rank 0 decides",
                "you asked rank 0 alone. What another rank has met is lost.",
                "ultralytics/yolov5 pull request 8345, 2022, where rank 0 alone validates and may decide",
                answers=(_rank_zero_decides,),
            ),
        ),
    ),
    Exercise(
        key="08.repeated_steps",
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
