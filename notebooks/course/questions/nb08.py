"""The questions of notebook 08, DDP that goes wrong, and several machines."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "08.uneven",
        "Rank 1 has left its loop after step 3 and is still alive. What happens to rank 0?",
        ("it raises in step 4", "it waits in step 4", "it goes on alone", "it waits after step 5"),
    ),
    Question(
        "08.log",
        "Only rank 0 sums its loss (0.5) for the log; then all sum 10 and 20. What does rank 1 get?",
        ("30.0", "20.5", "10.5", "it waits"),
    ),
    Question(
        "08.joined",
        "Every batch gives a weight the gradient 2. Rank 1 has joined after step 3. What is rank 0's "
        "gradient in step 4?",
        ("2.0", "1.0", "4.0"),
    ),
    Question(
        "08.unused",
        "Rank 0 used all parameters in step 2, rank 1 did not. Who notices first, without a watchdog?",
        ("rank 0, in backward", "rank 1, in backward", "rank 1, in its next forward", "nobody"),
    ),
)
