"""The questions of notebook 33, Testing multi-GPU code without GPUs."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "33.two_tests",
        "The prior is made where the first input lies. What will the two tests say on a machine with two GPUs?",
        ("2 passed", "1 passed, 1 skipped", "1 failed, 1 passed"),
    ),
    Question(
        "33.two_more",
        "`wrapped_first` calls the wrapped net before the bare one, and `one_row` has a batch of one row. How many of "
        "these two tests find the bug?",
        ("none", "one", "both"),
    ),
    Question(
        "33.race",
        "Pinned memory is copied with `non_blocking=True` and overwritten in the next line. What arrives on "
        "a virtual GPU?",
        ("what was there before", "what was written afterwards", "it raises an error"),
    ),
)
