"""The questions of notebook 00, Start here."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "00.rows",
        "The model gets 10 digits and one query, on four GPUs. How many digits come back?",
        ("10", "4", "3", "1"),
    ),
    Question(
        "00.batch",
        "Suppose the loader had `batch_size=33`, and the model is wrapped for four GPUs. How many rows does each "
        "replica get in a step?",
        ("33 each", "9, 9, 9, 6", "9, 8, 8, 8", "8 each, and one is left out"),
    ),
    Question(
        "00.loss",
        "Both trainings start with the same weights and see the same batches. How does the loss on four GPUs compare "
        "with that on one?",
        (
            "it is the same",
            "it is different: each GPU trains weights of its own",
            "it is different: each GPU steps with the gradient of a quarter of the rows",
        ),
    ),
)
