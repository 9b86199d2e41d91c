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
        "04.callers",
        "`DataParallel`, a call by hand, a thread, a thread that enters `cuda:1`: with which of them does the replica "
        "on `cuda:1` give a result?",
        ("DataParallel", "DataParallel, with", "DataParallel, by hand, with", "DataParallel, by hand, thread, with"),
    ),
    Question(
        "04.kept",
        "`forward` adds 1 to a number, appends to a list, and adds its rows to a buffer. Ten digits go through it on "
        "four GPUs, as 3, 3, 3 and 1 rows. What does the model have after this call?",
        (
            "calls 4, seen [1, 3, 3, 3], rows 10",
            "calls 0, seen [1, 3, 3, 3], rows 3",
            "calls 1, seen [3], rows 3",
            "calls 0, seen [], rows 0",
        ),
    ),
)
