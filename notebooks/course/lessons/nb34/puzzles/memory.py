"""After four steps under DataParallel the layer has to remember what the first GPU has seen; also where it is
called twice before backward, and not in evaluation.
"""

from course.kit.learn.puzzle import also, wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Which attributes does `DataParallel` copy back from its replicas after a step?",
    "None. But a buffer of the replica on the first GPU is the memory of the net's own buffer.",
    "In `ObjectRate`: `self.rate.copy_(...)` in place, and `return self.rate.clone()`, because "
    "autograd may need what was returned.",
)
memory = detector.ObjectRate
cases = cases_of("memory")


@wrong
@instead(
    (
        "            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n        return self.rate.clone()\n",
        "            self.register_buffer('rate', 0.5 * self.rate + 0.5 * target.mean())\n        return self.rate\n",
    ),
)
def still_in_the_replica():
    """this is what a layer gives that writes to an attribute of the replica: DataParallel throws replicas away after
    the step, and the net has not changed.
    """


@wrong
@instead(
    ("        return self.rate.clone()", "        return self.rate"),
)
def what_is_returned_is_overwritten():
    """this is what a layer gives that returns its buffer itself: the next call writes into it, and backward of the
    first call needs the old value.
    """


@wrong
@instead(
    (
        "            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n        return self.rate.clone()\n",
        "            self.rate.data = 0.5 * self.rate + 0.5 * target.mean()\n        return self.rate\n",
    ),
)
def around_autograd():
    """this is the gradient of a program that goes around autograd: what the first call returned has the value of the
    second when backward reads it, and nothing raises.
    """


@also(around_autograd)
@instead(
    (
        "            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n        return self.rate.clone()\n",
        "            self.rate.data.copy_(0.5 * self.rate + 0.5 * target.mean())\n        return self.rate\n",
    ),
)
def _(): ...


@wrong
@instead(
    (
        "        if self.training:\n            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n",
        "        self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n",
    ),
)
def learns_in_evaluation():
    """this is what a layer gives that also writes in evaluation: judging a net must not change it."""
