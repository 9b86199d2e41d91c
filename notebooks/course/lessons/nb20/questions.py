"""The questions of notebook 20, Train it on ranks."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "20.shares",
        "Each rank divides the four losses by the anchors and regions that it has drawn itself, and DDP averages the "
        "ranks. The same eight pictures, 4 + 4 on two ranks and 3 + 3 + 2 on three. Where is the loss that of one "
        "process?",
        ("on two ranks and on three", "on two ranks alone", "on neither"),
    ),
    Question(
        "20.empty",
        "Two ranks under DDP, with a picture each. That of rank 1 has no object, so there `rows` and `mask` are both "
        "0 / 0, NaN. After a step, where are weights NaN?",
        ("`rows` and `mask`, on both ranks", "`rows` and `mask`, on rank 1 alone", "`mask` alone, on both ranks"),
    ),
    Question(
        "20.norms",
        "Six pictures go through one layer, in training mode: all six in one process, or two on each of three ranks. "
        "For which layers are the outputs the same?",
        ("for SyncBatchNorm alone", "for SyncBatchNorm and FrozenBatchNorm", "for all but BatchNorm", "for all four"),
    ),
    Question(
        "20.which",
        "The same detector, the same pictures in the same order, 100 steps. In pictures that neither has seen, which "
        "run finds more of the digits?",
        ("run A, whose loss is larger", "run B, whose loss is smaller", "both find about as many"),
    ),
)
