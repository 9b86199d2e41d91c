"""All ranks have to log the mean loss over the objects of all ranks, also where a rank has none."""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "A rank waits in a collective, and another one does not come. On what does it depend whether a rank comes?",
    "In `log_losses`, follow a rank other than 0, and then a rank without objects, line by line.",
    "`distributed.all_reduce(together)` has no condition, and nothing returns before it.",
)
waiting = detector.log_losses
cases = cases_of("waiting")


@wrong
@instead(
    (
        "    distributed.all_reduce(together)\n    return (together[0]",
        "    if together[1] > 0:\n        distributed.all_reduce(together)\n    return (together[0]",
    ),
)
def only_where_there_are_objects():
    """this is how a program ends in which a rank without objects does not come to the collective."""


@wrong
@instead(
    ("distributed.all_reduce(together)", "distributed.reduce(together, 0)"),
)
def rank_0_alone_knows():
    """nobody waits any more, and rank 0 has the mean. `reduce` gives the sum to one rank; all ranks have to log it."""


@wrong
@instead(
    ("    distributed.all_reduce(together)\n    return (together[0]", "    return (together[0]"),
)
def nobody_asks_the_others():
    """nobody waits any more, and each rank logs the mean over its own objects."""


@wrong
@instead(
    (
        "    distributed.all_reduce(together)\n    return (together[0] / together[1].clamp(min=1)).item()",
        "    mean = together[0] / together[1].clamp(min=1)\n"
        "    distributed.all_reduce(mean)\n"
        "    return (mean / distributed.get_world_size()).item()",
    ),
)
def a_mean_of_means():
    """this is the mean of the ranks' means, in which a rank with few objects, or none, weighs as much as the others."""
