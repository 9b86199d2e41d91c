"""The questions of notebook 33, Testing multi-GPU code without GPUs."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "33.two_tests",
        "The prior is made where the first input lies. What will the two tests say on a machine with two GPUs?",
        ("2 passed", "1 passed, 1 skipped", "1 failed, 1 passed"),
    ),
    Question(
        "33.host",
        "The step below ends in `total += loss.item()`. How many copies go from a GPU to the CPU?",
        ("0", "1", "2"),
    ),
    Question(
        "33.ddp",
        "Each rank sums three rows; rank 0's rows are 1, rank 1's are 2. What gradient has each weight after backward?",
        ("3 and 6", "4.5 on both", "9 on both"),
    ),
    Question(
        "33.race",
        "Pinned memory is copied with `non_blocking=True` and overwritten in the next line. What arrives on "
        "a virtual GPU?",
        ("what was there before", "what was written afterwards", "it raises an error"),
    ),
)
