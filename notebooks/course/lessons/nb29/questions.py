"""The questions of notebook 29, In-place errors: who wrote to my target?."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "29.shape",
        "`unsqueeze_` moves no number in memory, it changes the shape. At which version does it leave a new target?",
        ("0", "1"),
    ),
    Question(
        "29.data",
        "`y = x.exp()`, then `y.data.mul_(0)`, then `y.sum().backward()`. The gradient of exp is exp itself. "
        "What happens?",
        ("the right gradient", "a gradient of zero, and no error", "the error of this notebook"),
    ),
    Question(
        "29.restored",
        "`unsqueeze_`, `gather`, `squeeze_`: the target has its old shape and its old numbers again. Does "
        "backward work?",
        ("yes", "no, the target is at version 2; expected version 1"),
    ),
    Question(
        "29.anomaly",
        "Which line does anomaly mode show?",
        ("the one that saved the target: gather", "the one that wrote to it: squeeze_"),
    ),
    Question(
        "29.order",
        "Take both apart: run backward of the two losses one by one, in either order. What decides whether it fails?",
        ("the order of backward", "the order of forward", "both"),
    ),
)
