"""The questions of notebook 08, When ranks wait for each other."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "08.report",
        "Rank 0 has five batches and rank 1 has three. Rank 1 leaves its loop and goes on with something else. Which "
        "rank will wait until its time is over, and in which call? (All five calls of rank 0 have numbers, #1 to #5.)",
        ("rank 1, in all_reduce #3", "rank 0, in all_reduce #4", "rank 0, in all_reduce #5", "nobody"),
    ),
    Question(
        "08.log",
        "Only rank 0 sums its loss (0.5) for the log; then all sum 10 and 20. What does rank 1 get?",
        ("30.0", "20.5", "10.5", "it waits, and gets nothing"),
    ),
    Question(
        "08.evaluate",
        "After step 2 rank 0 evaluates alone, for six seconds; a rank may spend two in a collective. Behind it both "
        "ranks call `barrier()`, their third collective. Who is reported to wait too long?",
        ("nobody", "rank 0, in its evaluation", "rank 1, in barrier #3"),
    ),
    Question(
        "08.unused",
        "Rank 0 used all parameters in step 2, rank 1 did not. Who notices first, without a watchdog?",
        ("rank 0, in backward", "rank 1, in backward", "rank 1, in its next forward", "nobody"),
    ),
    Question(
        "08.ends",
        "The process of rank 1 ends before step 3, without an error. The ranks have NCCL, a time-out of six seconds, "
        "and `TORCH_NCCL_BLOCKING_WAIT=1`, so a collective waits for its end. What does rank 0 get from the "
        "`all_reduce` of step 3?",
        ("the sum", "an error, at once", "an error, after the time-out"),
    ),
)
