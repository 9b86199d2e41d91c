"""The questions of notebook 04, Whose GPU is it?."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "04.follows",
        "`holder` lies on `cuda:0` and is copied to `cuda:1`. Its list holds the buffer itself. What does the copy "
        "find on `cuda:1`?",
        (
            "weight",
            "weight, buffer",
            "weight, buffer, tensor in a list",
            "weight, buffer, plain tensor, tensor in a list",
        ),
    ),
    Question(
        "04.new_thread",
        "In the main thread `cuda:2` is current. It starts a new thread. Which device is current there?",
        ("cuda:0", "cuda:2", "none, until the thread chooses one"),
    ),
    Question(
        "04.backward",
        "`backward` is called in the main thread, where `cuda:0` is current. Which device is current while the "
        "gradient of the replica on `cuda:1` is computed?",
        ("cuda:0", "cuda:1"),
    ),
)
