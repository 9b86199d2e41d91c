"""The questions of notebook 17, RoI pooling: kernels."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "17.index",
        "The output has 8 regions, 4 channels and 7 x 7 bins: (8, 4, 7, 7). Which output does the thread with the "
        "index 1000 compute? All numbers count from 0.",
        (
            "region 5, channel 0, row 2, column 6",
            "region 5, channel 0, row 6, column 2",
            "region 0, channel 5, row 2, column 6",
            "region 6, channel 1, row 3, column 7",
        ),
    ),
    Question(
        "17.threads",
        "A launch for 8 regions, 4 channels and 7 x 7 bins: 1568 outputs. How many threads start, in blocks of 1024?",
        ("1024", "1568", "2048"),
    ),
    Question(
        "17.race",
        "49 outputs send a gradient of 1 each, to 26 different cells. All 49 threads read the old number of their cell "
        "before the first of them writes. How much has arrived in the end, added up over all cells?",
        ("0", "23", "26", "49"),
    ),
    Question(
        "17.order",
        "300 boxes, then the same boxes in reverse order. Which gradient of the features stays the same, bit for bit?",
        ("that of ones", "that of random numbers", "both", "neither"),
    ),
    Question(
        "17.two_gpus",
        "The module looks its kernel up in `__init__`, in a cache that keeps one kernel for each device, while cuda:0 "
        "is current. Then it is called on cuda:0, and on cuda:1 with cuda:1 current. How does that end?",
        (
            "right on both",
            "right on cuda:0, an error on cuda:1",
            "an error on both",
        ),
    ),
)
