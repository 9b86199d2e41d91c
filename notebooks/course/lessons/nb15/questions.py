"""The questions of notebook 15, RoI pooling: the rule."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "15.hook",
        "The map counts 0..35 in rows of six, stride 16. What does RoI pooling give for the box (24, 24, 40, "
        "40), 2 x 2?",
        ("[7, 8, 13, 14]", "[14, 14, 14, 14]", "[14, 15, 20, 21]"),
    ),
    Question(
        "15.eight_rows",
        "A region of 8 rows is pooled to 7. How many rows does each bin cover?",
        ("six bins cover 1, one covers 2", "all cover 2", "all cover 1, and a row is left out"),
    ),
    Question(
        "15.one_cell",
        "The box (32, 32, 48, 48) covers exactly one cell, that of row 2 and column 2. How many cells does RoI "
        "pooling read for it?",
        ("1", "4", "9"),
    ),
    Question(
        "15.default",
        "In this map each cell holds the pixel of its own middle: 8, 24, 40, 56 and so on. The middle of the box is "
        "pixel 40. What does `roi_align` return for it, with its defaults?",
        ("32", "40", "48"),
    ),
    Question(
        "15.ties",
        "Nine cells that all hold zero are pooled to one bin. A gradient of 1 comes back. Which cells get it?",
        ("the first cell all of it", "each cell 1/9", "each cell 1"),
    ),
)
