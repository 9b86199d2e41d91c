"""The questions of notebook 00, Start here."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "00.rows",
        "The model gets 10 digits and one query, on two GPUs. How many digits come back?",
        ("10", "5", "2"),
    ),
    Question(
        "00.mix",
        "What is `a + b`, with `a` on `cuda:0` and `b` on `cuda:1`?",
        ("a tensor on cuda:0", "a tensor on cuda:1", "an error"),
    ),
    Question(
        "00.gradient",
        "Loss: a sum over all rows. What are the gradients on two GPUs, next to those on one?",
        ("half as large", "equal", "twice as large"),
    ),
)
