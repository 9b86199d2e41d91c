"""The questions of notebook 23, Convolution by hand."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "23.positions_3_by_4",
        "A 3 x 4 window over a batch of shape (2, 5, 10, 9). What is the shape of `F.unfold`'s result?",
        ("(2, 60, 48)", "(2, 12, 48)", "(2, 60, 90)", "(2, 48, 60)"),
    ),
    Question(
        "23.fold_of_unfold",
        "An 8 x 8 image of ones, `F.fold(F.unfold(x, 3), (8, 8), 3)`. Which number stands in the middle?",
        ("1", "3", "6", "9"),
    ),
    Question(
        "23.memory",
        "A 3 x 3 convolution with padding 1 on a large image: how much memory do the columns take, in images?",
        ("1 image", "3 images", "9 images", "64 images"),
    ),
    Question(
        "23.float64",
        "F.conv2d in float64, as in the first cells of this notebook, on a CPU. What does it allocate at "
        "once, at most?",
        ("1 image: the output", "9 images: the whole matrix", "a tile that fits into the cache"),
    ),
)
