"""The questions of notebook 29, In-place errors: who wrote to my target?."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "29.caller",
        "A batch of eight rows is on `cuda:0` and goes through `DataParallel` with a layer that does "
        "`x.sub_(x.mean(0))`, under `no_grad`. Nothing raises. Which rows of the caller's batch have changed?",
        ("none", "rows 0 to 3", "all eight"),
    ),
    Question(
        "29.data",
        "x is 3, `h = 2 * x`, and `h.square()` saves h. The gradient of x is 4 * h. Between forward and backward the "
        "program calls `h.data.mul_(0)`. What is the gradient then?",
        ("24.0", "0.0", "there is none, but the error of this notebook"),
    ),
    Question(
        "29.order",
        "Each loss gets a backward of its own, in either order, after both were computed, in either order. "
        "What decides whether it fails?",
        ("the order of backward", "the order of forward", "both"),
    ),
    Question(
        "29.twice",
        "The layer keeps its size with `copy_`, divides by it, and is called twice before one backward. "
        "Where does backward raise?",
        ("on none", "on two GPUs only", "on one GPU and on two"),
    ),
)
