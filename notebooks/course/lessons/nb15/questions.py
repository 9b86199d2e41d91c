"""The questions of notebook 15, Reading a region."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "15.half",
        "The same weights, and every region is read half a cell, 2 pixels, to the left and above. Of the digits that "
        "were found, how many still are?",
        (
            "nearly all at 0.5, nearly all at 0.75",
            "nearly all at 0.5, about half at 0.75",
            "about half at 0.5, about half at 0.75",
            "about half at 0.5, hardly any at 0.75",
        ),
    ),
    Question(
        "15.default",
        "In this map each cell holds the pixel of its own middle. The box (32, 32, 48, 48) is exactly one cell, whose "
        "middle is pixel 40. What does torchvision's `roi_align` return for it, with its defaults?",
        ("32", "40", "48"),
    ),
    Question(
        "15.read",
        "A box of 56 x 56 cells, pooled to 7 x 7 with 2 x 2 points a bin. How many of its 3136 cells make a difference "
        "to the result?",
        ("all", "half", "a quarter", "a sixteenth"),
    ),
    Question(
        "15.ties",
        "Nine cells that all hold zero are pooled to one bin by their maximum. A gradient of 1 comes back. Which cells "
        "get it?",
        ("the first cell all of it", "each cell 1/9", "each cell 1"),
    ),
)
