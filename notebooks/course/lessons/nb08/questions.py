"""The questions of notebook 08, When ranks wait for each other."""

from course.kit.learn.question import Question

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
        "After step 2 rank 0 evaluates alone, for six seconds; a rank may spend two in a collective. Behind it both "
        "ranks call `barrier()`. What is reported?",
        ("nothing: rank 1 waits in the barrier, and both go on", "rank 0, in its evaluation", "rank 1, in the barrier"),
    ),
    Question(
        "08.unused",
        "Rank 0 used all parameters in step 2, rank 1 did not. Who notices first, without a watchdog?",
        ("rank 0, in backward", "rank 1, in backward", "rank 1, in its next forward", "nobody"),
    ),
    Question(
        "08.ends",
        "The ranks talk over gloo, and not over NCCL. The process of rank 1 ends before step 3, without an error. "
        "What does rank 0 get from the `all_reduce` of step 3?",
        ("the sum", "an error from gloo, at once", "nothing: it waits until the time-out of gloo"),
    ),
)
