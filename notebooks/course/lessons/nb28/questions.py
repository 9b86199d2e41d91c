"""The questions of notebook 28, Determinism: the same run twice."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "28.missing",
        "Run the six lines, draw; run them again, draw again. Which generators give other numbers the second time?",
        ("none", "Python's and NumPy's", "those of the GPUs"),
    ),
    Question(
        "28.masks",
        "`nn.DataParallel(nn.Dropout(0.5))` on two GPUs, 8 rows, after `manual_seed`. The two halves' masks are ...",
        ("independent", "the same mask twice"),
    ),
    Question(
        "28.workers",
        "The same seed, one worker instead of two. Are the numbers of item 3 the same?",
        ("yes", "no"),
    ),
    Question(
        "28.orders",
        "Six float32 numbers have 720 orders. How many different sums do they give?",
        ("1", "8", "720"),
    ),
)
