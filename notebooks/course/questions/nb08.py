"""The questions of notebook 08, When ranks wait for each other."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "08.report",
        "Rank 0 has five batches and rank 1 has three. Rank 1 leaves its loop and goes on with something else. Which "
        "rank will report that something is wrong, and in which step?",
        ("rank 1, in step 3", "rank 0, in step 4", "rank 0, in step 5", "none: rank 0 goes on alone"),
    ),
    Question(
        "08.log",
        "Only rank 0 sums its loss (0.5) for the log; then all sum 10 and 20. What does rank 1 get?",
        ("30.0", "20.5", "10.5", "it waits, and gets nothing"),
    ),
    Question(
        "08.evaluate",
        "After step 2 rank 0 evaluates alone, for longer than a rank may spend in a collective. What is reported?",
        (
            "rank 0 reports, in its evaluation",
            "rank 1 reports, in step 3",
            "nothing: rank 1 takes its step 3, and waits for rank 0 at the end",
        ),
    ),
    Question(
        "08.unused",
        "Rank 0 used all parameters in step 2, rank 1 did not. Who notices first, without a watchdog?",
        ("rank 0, in backward", "rank 1, in backward", "rank 1, in its next forward", "nobody"),
    ),
)
