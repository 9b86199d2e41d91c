"""The questions of notebook 01, Scatter: the rows that vanished."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "01.rows_on_4_and_8",
        "`x1` has 10 rows and `x2` has one. How many rows come back on 4 GPUs, and on 8?",
        ("5 and 5", "3 and 2", "2 and 1", "10 and 10"),
    ),
    Question(
        "01.replicas_of_8",
        "Ten rows, nothing else, on 8 GPUs. How many replicas are called?",
        ("8", "7", "5", "2"),
    ),
    Question(
        "01.keyword",
        "What does `dp(digits, x2=table)` do on two GPUs?",
        ("10 rows come back", "5 rows come back", "it raises an error"),
    ),
    Question(
        "01.three_rows",
        "`x1` has 10 rows, `x2` has 3. How many rows of `x1` come back on 4 GPUs?",
        ("10", "9", "6", "3"),
    ),
    Question(
        "01.expand_2_on_8",
        "The post's repair, `x2.expand(2, -1, -1)`, on 8 GPUs: how many of 10 rows come back?",
        ("10", "8", "5", "4"),
    ),
)
