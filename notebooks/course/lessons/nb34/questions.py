"""The question of notebook 34, ten bugs."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "34.by_themselves",
        "The program has ten bugs, and on one GPU none of them shows. How many of the ten raise an error or hang on "
        "two GPUs, so that a person notices without measuring anything?",
        ("2", "5", "8"),
    ),
)
