"""In each epoch no row is taken twice, all rows are taken that fill a batch for every rank, and the order is new
in each epoch and the same in a second run.
"""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Compare the order of all rows that rank 0 draws with that of rank 1.",
    "In `rows_of_rank` the ranks take parts of an order. What must be in its seed, and what must not?",
    "`torch.Generator().manual_seed(seed + epoch)`: the epoch, and not the rank.",
)
unseen = detector.rows_of_rank
cases = cases_of("unseen")


@wrong
@instead(
    ("manual_seed(seed + epoch))", "manual_seed(seed + epoch + rank))"),
)
def an_order_for_each_rank():
    """these are the rows of ranks that shuffle for themselves: their shares are of different orders, and overlap."""


@wrong
@instead(
    ("manual_seed(seed + epoch))", "manual_seed(seed))"),
)
def every_epoch_the_same():
    """these are rows that come in the same order in every epoch."""


@wrong
@instead(
    ("torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))", "torch.randperm(count)"),
)
def not_the_same_again():
    """these are rows in an order that no second run repeats, or on which the ranks do not agree."""


@wrong
@instead(
    ("    order = order[: count // (ranks * batch_size) * ranks * batch_size]\n", ""),
)
def ranks_with_unequal_batches():
    """these are rows of ranks that do not have equally many full batches. The one with more waits for the others in
    its last step.
    """


@wrong
@instead(
    (
        "    return order[rank::ranks].split(batch_size)\n",
        "    return order.split(batch_size)[: len(order) // (ranks * batch_size)]\n",
    ),
)
def the_same_share():
    """these are the rows of ranks that all take the first share."""
