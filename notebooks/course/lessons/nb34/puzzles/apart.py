"""After each step all ranks have to have the same weights, those of the gradient of all ranks' pictures, in
however many parts a batch goes through.
"""

from course.kit.learn.puzzle import also, wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Where is a gradient sent to the other ranks, and what can prevent that?",
    "`ddp.no_sync()` prevents it for one forward and its backward. For which parts is it entered in `take_step`?",
    "The last part has `k == len(pieces) - 1`; it needs `contextlib.nullcontext()`, and all others `ddp.no_sync()`.",
)
apart = detector.take_step
cases = cases_of("apart")


@wrong
@instead(
    (
        "        with contextlib.nullcontext() if k == len(pieces) - 1 else ddp.no_sync():\n"
        "            done.append(ddp(*piece))\n"
        "            (loss_of_rank(*done[-1]) / len(pieces)).backward()\n",
        "        done.append(ddp(*piece))\n"
        "        ddp.require_backward_grad_sync = k == len(pieces) - 1\n"
        "        (loss_of_rank(*done[-1]) / len(pieces)).backward()\n",
    ),
)
def the_flag_comes_too_late():
    """these are the weights of ranks that send the gradient of the first part, and not that of the last, in which the
    whole sum is there. DDP decides in the *forward* whether it will send, so a flag that is set between forward and
    backward comes one part late.
    """


@also(the_flag_comes_too_late)
@instead(
    ("k == len(pieces) - 1 else", "k == 0 else"),
)
def the_first_part_is_sent():
    """The same weights, by a condition that asks for the first part."""


@wrong
@instead(
    ("k == len(pieces) - 1 else", "k == len(pieces) else"),
)
def nothing_is_sent():
    """these are the weights of ranks that send nothing: each of them trains alone."""


@wrong
@instead(
    ("(loss_of_rank(*done[-1]) / len(pieces)).backward()", "loss_of_rank(*done[-1]).backward()"),
)
def parts_that_are_not_divided():
    """the ranks agree, and the gradient is as many times too large as there are parts: each part's loss is that of a
    whole batch.
    """


@also(nothing_is_sent)
@instead(
    ("done.append(ddp(*piece))", "done.append(ddp.module(*piece))"),
)
def around_the_wrapper():
    """these are the weights of ranks that call the bare net: DDP prepares its messages in the wrapper's forward."""
