"""Shape of the weight of `nn.Conv2d(in_channels, out_channels, kernel, groups=groups)`."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "One filter for every output channel. How many input channels does a filter see?",
    "Its own group's: `in_channels // groups`. The number of filters does not change.",
    "`(out_channels, in_channels // groups, kernel, kernel)`",
)


def weight_shape(in_channels: int, out_channels: int, kernel: int, groups: int) -> tuple[int, int, int, int]:
    """Shape of `nn.Conv2d(in_channels, out_channels, kernel, groups=groups).weight`."""
    return (out_channels, in_channels // groups, kernel, kernel)


def cases(random: Random) -> Sequence[Case]:
    fixed = [(6, 12, 3, 3), (3072, 6144, 1, 12), (12, 12, 3, 12), (12, 12, 3, 1), (4, 8, 5, 2)]
    drawn = []
    for _ in range(20):
        groups = random.randint(2, 12)
        drawn.append((groups * random.randint(1, 9), groups * random.randint(1, 9), random.choice([1, 3, 5]), groups))
    return [Case(case) for case in fixed + drawn]


agree = same_values


@wrong
def filters_see_all_channels(cin, cout, kernel, groups):
    """these filters see all input channels. A filter sees those of its group only, which is the point of grouping.

    Source: so the specification once read, onnx/onnx issue 1282, 2018; pytorch/pytorch issue 5521, 2018
    """
    return (cout, cin, kernel, kernel)


@wrong
def divided_twice(cin, cout, kernel, groups):
    """this is the shape if the filters are divided among the groups as well. There are still `out_channels` of them,
    and none is shared by two groups.

    Source: BVLC/caffe issue 5334, 2017, takes the smaller tensor for shared filters
    """
    return (cout // groups, cin // groups, kernel, kernel)
