"""The questions of notebook 17, RoI pooling: kernels."""

from course.kit.learn.question import Question

QUESTIONS = (
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
        "17.launches",
        "`ops.roi_bins` and then the kernel: how many kernels does a GPU run, in all, for one call of this pooling?",
        ("1", "2", "about 10", "about 40"),
    ),
    Question(
        "17.two_gpus",
        "The module takes its kernel in `__init__`, while cuda:0 is current, from a cache that keeps one kernel for "
        "each device. Then it is called with features on cuda:1, and cuda:1 is current. Which kernel does it launch?",
        ("that of cuda:0", "that of cuda:1", "a new one, compiled for this call"),
    ),
)
