"""The questions of notebook 01, Scatter: the rows that vanished."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "01.rows_on_4_and_8",
        "`x1` has 10 rows and `x2` has one. How many rows come back on 4 GPUs, and on 8?",
        ("5 and 5", "3 and 2", "2 and 1", "10 and 10"),
    ),
    Question(
        "01.array",
        "The ten digits are passed as a NumPy array on two GPUs, and the model makes a tensor of what it gets. "
        "How many rows come back?",
        ("10", "5", "20", "it raises an error"),
    ),
    Question(
        "01.list",
        "`pictures` is a list of two pictures, of shape (3, 20, 20) and (3, 16, 12). What does `scatter` give to "
        "`cuda:1` of two GPUs?",
        ("the second picture", "both pictures", "the blue of both pictures"),
    ),
    Question(
        "01.keyword",
        "What does `dp(digits, x2=table)` do on two GPUs?",
        ("10 rows come back", "5 rows come back", "it raises an error"),
    ),
    Question(
        "01.two_and_a_keyword",
        "`images` and `masks` have 10 rows each and `paper` has one. What does `dp(images, masks, paper=paper)` do on "
        "two GPUs?",
        (
            "10 rows come back, and all of them are right",
            "10 rows come back, and some of them are wrong",
            "5 rows come back",
            "it raises an error",
        ),
    ),
)
