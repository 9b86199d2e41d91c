"""The questions of notebook 36, pipelines by hand."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "36.idle",
        "Four equal stages, each on its own GPU, and a batch that goes through in one piece. "
        "For how much of a step does each GPU work?",
        ("all of it", "half of it", "a quarter of it"),
    ),
    Question(
        "36.more",
        "Four stages. How many micro-batches does it take until the GPUs are idle for less than a tenth of the step?",
        ("4", "13", "28"),
    ),
    Question(
        "36.gradient",
        "The batch is cut into eight equal micro-batches, and `backward()` is called on the mean loss of each. "
        "How large is the gradient, compared with that of the mean loss of the whole batch?",
        ("the same", "eight times as large", "an eighth of it"),
    ),
    Question(
        "36.held",
        "Four stages and eight micro-batches, under 1F1B. "
        "Of how many micro-batches does the first stage keep activations at the worst moment?",
        ("1", "4", "7", "8"),
    ),
)
