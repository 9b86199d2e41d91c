"""The questions of notebook 23, Convolution by hand."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "23.seam",
        "The two halves of the output are put together. How many of its 16 rows have wrong numbers?",
        ("none", "1", "2", "8"),
    ),
    Question(
        "23.deeper",
        "Three such layers in a row, each half stays on its GPU, and the halves are put together at the end. "
        "How many of the 16 rows are wrong now?",
        ("2", "4", "6", "16"),
    ),
    Question(
        "23.fold_of_unfold",
        "An 8 x 8 image of ones, `F.fold(F.unfold(x, 3), (8, 8), 3)`. Which number is in the middle?",
        ("1", "3", "6", "9"),
    ),
    Question(
        "23.float64",
        "F.conv2d in float64, as in this notebook, on a CPU. What does it allocate at once, at most?",
        ("1 image: the output", "9 images: the whole matrix", "a tile that fits into the cache"),
    ),
)
