"""The questions of notebook 00, Start here."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "00.rows",
        "The model gets 10 digits and one query, on two GPUs. How many digits come back?",
        ("10", "5", "2"),
    ),
    Question(
        "00.batch",
        "Suppose the loader had `batch_size=33`, and the model is wrapped for two GPUs. How many rows does each "
        "replica get in a step?",
        ("33 and 33", "17 and 16", "16 and 17", "16 and 16, and one is left out"),
    ),
    Question(
        "00.loss",
        "Both trainings start with the same weights and see the same batches. How does the loss on two GPUs compare "
        "with that on one?",
        (
            "it is the same",
            "it is different: each GPU trains weights of its own",
            "it is different: each GPU steps with the gradient of half of the rows",
        ),
    ),
    Question(
        "00.mix",
        "What is `a + b`, with `a` on `cuda:0` and `b` on `cuda:1`?",
        ("a tensor on cuda:0", "a tensor on cuda:1", "an error"),
    ),
)
