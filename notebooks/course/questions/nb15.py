"""The questions of notebook 15, RoI pooling: the rule."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "15.hook",
        "The map counts 0..35 in rows of six, stride 16. What does RoI pooling give for the box (24, 24, 40, "
        "40), 2 x 2?",
        ("[7, 8, 13, 14]", "[14, 14, 14, 14]", "[14, 15, 20, 21]"),
    ),
    Question(
        "15.overlap",
        "A region of 8 rows is pooled to 7. How many rows does each bin cover?",
        ("six bins cover 1, one covers 2", "all cover 2", "all cover 1, and a row is left out"),
    ),
    Question(
        "15.inverted",
        "x1, y1, x2, y2 drawn independently. In how many boxes is x2 < x1 or y2 < y1?",
        ("1 in 4", "1 in 2", "3 in 4"),
    ),
    Question(
        "15.stairs",
        "The box moves 32 pixels in 32 steps; stride 16. How often does the first output of RoI pooling change?",
        ("2", "16", "32"),
    ),
)
