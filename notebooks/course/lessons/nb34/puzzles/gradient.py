"""After DDP's mean over the ranks the gradient has to be that of one process with all pictures, however the
objects are divided among the ranks; without any object it is 0.
"""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "What does a rank with five objects divide by, and what a rank with two? And one process with seven?",
    "By the counts of *all* ranks: `all_reduce` adds them. Then DDP takes the mean of the ranks' "
    "gradients, where the sum is wanted.",
    "`total = counts.sum(0)`, `distributed.all_reduce(total)`, and `distributed.get_world_size() * "
    "sums.sum(0) / total.clamp(min=1)`.",
)
gradient = detector.loss_of_rank
cases = cases_of("gradient")


@wrong
@instead(
    (
        "    total = counts.sum(0)\n"
        "    distributed.all_reduce(total)\n"
        "    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()\n",
        "    return (sums.sum(0) / counts.sum(0).clamp(min=1)).sum()\n",
    ),
)
def its_own_objects():
    """this is the gradient of a program where each rank divides by its own counts: an object weighs more on the rank
    that has fewer.
    """


@wrong
@instead(
    ("distributed.get_world_size() * sums", "sums"),
)
def without_the_number_of_ranks():
    """this is the gradient of a program that forgets DDP's mean: it is too small by the number of ranks."""


@wrong
@instead(
    ("distributed.get_world_size() * sums", "2 * sums"),
)
def two_for_the_number_of_ranks():
    """this is the gradient of a program that takes 2 for the number of ranks. On one rank it is twice as long, and on
    four it is half as long.
    """


@wrong
@instead(
    (
        "    total = counts.sum(0)\n"
        "    distributed.all_reduce(total)\n"
        "    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()\n",
        "    total = counts.sum(0)\n"
        "    distributed.all_reduce(total)\n"
        "    return (sums.sum(0) / (total / distributed.get_world_size()).clamp(min=1)).sum()\n",
    ),
)
def the_mean_is_clamped():
    """this divides by the mean of the counts, which is right, and raises it to 1: where the ranks have less than one
    object each the gradient is too small.
    """


@wrong
@instead(
    (
        "    total = counts.sum(0)\n    distributed.all_reduce(total)\n",
        "    total = counts.sum(0).clamp(min=1)\n    distributed.all_reduce(total)\n",
    ),
)
def clamped_before_it_is_added():
    """this raises each rank's count to 1 before the counts are added: a rank without objects then adds one that is not
    there.
    """


@wrong
@instead(
    ("total.clamp(min=1)", "total"),
)
def nan_without_objects():
    """this divides by 0 where no rank has an object."""


@wrong
@instead(
    (
        "    total = counts.sum(0)\n    distributed.all_reduce(total)\n",
        "    distributed.all_reduce(counts)\n    total = counts.sum(0)\n",
    ),
)
def the_caller_s_counts_are_changed():
    """the gradient is right, and `all_reduce` has written into the counts of whoever called: the log then counts every
    object twice.
    """


@wrong
@instead(
    (
        "    total = counts.sum(0)\n"
        "    distributed.all_reduce(total)\n"
        "    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()\n",
        "    means = sums.sum(0) / counts.sum(0).clamp(min=1)\n"
        "    have = (counts.sum(0) > 0).float()\n"
        "    distributed.all_reduce(have)\n"
        "    return (distributed.get_world_size() * means / have.clamp(min=1)).sum()\n",
    ),
)
def an_average_of_averages():
    """this is the average of the ranks' means: it weighs ranks, and not objects."""
