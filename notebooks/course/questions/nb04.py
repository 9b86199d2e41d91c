"""The questions of notebook 04, Who owns the current device?."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "04.after_numpy",
        "`cuda:2` is current. A tensor is taken to the CPU, NumPy works on it. Which device is current then?",
        ("0", "2", "none"),
    ),
    Question(
        "04.new_thread",
        "`cuda:2` is current, and a thread is started. Which is current in the thread?",
        ("0", "2", "none"),
    ),
    Question(
        "04.forwards",
        "Four parameters. How often does a replica run if it lists them, and how often one of today's replicas?",
        ("once, once", "once, never", "four times, once", "four times, never"),
    ),
    Question(
        "04.gather_list",
        "`cuda:0` is current. Where is the result of `gather(outputs, [1])`?",
        ("cuda:0", "cuda:1", "it raises an error"),
    ),
    Question(
        "04.stale",
        "What does the second step give when `replicate` stands before the loop?",
        ("the loss of the first step again", "a smaller loss, as it should", "it raises an error"),
    ),
)
