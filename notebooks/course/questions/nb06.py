"""The questions of notebook 06, Memory balance."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "06.fuller",
        "60 rows, 15 on each of four GPUs. What does `cuda:0` hold at its peak, compared with `cuda:1`?",
        ("as much", "up to twice as much", "more than four times as much"),
    ),
    Question(
        "06.between",
        "Between two steps, how much of the model lies on `cuda:1`?",
        ("all of its weights", "a quarter of its weights", "nothing"),
    ),
    Question(
        "06.one_row",
        "The loss is outside, and `cuda:0` gets one row of 60 instead of 15. How far does its peak fall?",
        ("to that of the others", "by about half", "by less than a tenth"),
    ),
    Question(
        "06.limit",
        "Every GPU has 0.93 of what the even step needs on `cuda:0`. Which steps go through?",
        ("neither", "the one with 12 rows on cuda:0", "both"),
    ),
)
