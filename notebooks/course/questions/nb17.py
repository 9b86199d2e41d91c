"""The questions of notebook 17, RoI pooling: kernels."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "17.two_gpus",
        "The module of 2017 behind a convolution, replicated over two GPUs. How does a training step end?",
        ("as on one GPU", "an error in forward", "an error in backward"),
    ),
    Question(
        "17.reads",
        "A bin of 12 x 9 cells, read from the two-dimensional table. How many numbers are read?",
        ("4", "21", "108"),
    ),
    Question(
        "17.threads",
        "Its test has 8 regions, 4 channels, 7 x 7 bins: 1568 outputs. How many threads start, in blocks of 1024?",
        ("1024", "1568", "2048"),
    ),
    Question(
        "17.order",
        "300 ordered boxes, then the same in reverse order. Whose gradient stays the same, bit for bit?",
        ("that of a sum", "that of random weights", "both"),
    ),
)
