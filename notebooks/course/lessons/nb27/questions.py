"""The questions of notebook 27, Learning rates: parts, groups, schedules and ranks."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "27.control",
        "The same run again, with the head's loss left out of the sum: its gradient reaches no layer at all. "
        "What does the loss of the proposal network do now?",
        ("it stays low", "it rises about half as high", "it rises about as high"),
    ),
    Question(
        "27.filter",
        "Before somebody builds the same optimizer, the line `sum(p.numel() for p in logits_params)` counts the "
        "numbers outside the backbone. How many tensors does group 0 hold?",
        ("4", "0", "none: SGD raises an error"),
    ),
    Question(
        "27.four",
        "`train(0.03)` on one rank, and on four: the same three epochs, and 16 rows a batch on each rank. How many of "
        "the 325 held-out digits are right after the run on four ranks?",
        ("about as many, within three per cent", "clearly more", "clearly fewer"),
    ),
    Question(
        "27.schedule",
        "A script counts its updates as on one process: `total = 3 * 1472 // 16`. Its rate falls on a straight line "
        "from 0.12 to 0 at `total`. What is the rate of the last update when it runs on four ranks?",
        ("0.00", "0.03", "0.09"),
    ),
)
