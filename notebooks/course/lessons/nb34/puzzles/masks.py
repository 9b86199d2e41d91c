"""On every rank the new net has equal weights, without DDP's help, and from then on each rank's GPU draws its own
numbers, which a second run draws again.
"""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "In which state is the generator of each rank's GPU after the net was made?",
    "`seed_rank` seeds before the net, with what all ranks have in common. What has to follow after the net?",
    "`torch.manual_seed(seed + 1 + distributed.get_rank())` before `return net`.",
)
masks = detector.seed_rank
cases = cases_of("masks")


@wrong
@instead(
    (
        "    torch.manual_seed(seed)\n    net = Detector()\n    torch.manual_seed(seed + 1 + distributed.get_rank())\n",
        "    torch.manual_seed(seed + distributed.get_rank())\n    net = Detector()\n",
    ),
)
def the_rank_comes_too_early():
    """these are nets with different weights on each rank. DDP would repair it, because it sends those of rank 0
    around. FSDP2 does not: it would train a patchwork.
    """


@wrong
@instead(
    (
        "torch.manual_seed(seed + 1 + distributed.get_rank())",
        "torch.default_generator.manual_seed(seed + 1 + distributed.get_rank())",
    ),
)
def all_draw_alike():
    """these are ranks that draw the same numbers on their GPUs."""


@wrong
@instead(
    ("torch.manual_seed(seed + 1 + distributed.get_rank())", "torch.seed()"),
)
def never_the_same_again():
    """the ranks draw different numbers, and no second run draws them again."""
