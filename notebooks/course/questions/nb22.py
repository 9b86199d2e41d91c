"""The questions of notebook 22, Your own boxes."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "22.raise",
        "A loader that believes every file: of the seven, how many stop it with an error while it reads?",
        ("one", "four", "seven"),
    ),
    Question(
        "22.log",
        "A box with xmin = xmax, and a prediction of 0 for its log width. Smooth L1 loss and its gradient?",
        ("nan and nan", "inf and nan", "inf and 1"),
    ),
    Question(
        "22.culprit",
        "One box of one picture is nan. In how many of the six pictures is some loss not finite?",
        ("one", "the three after it too", "all six"),
    ),
    Question(
        "22.difficult",
        "The second object is found twice. AP when it counts, and when it is marked as difficult?",
        ("1.00 and 1.00", "0.83 and 1.00", "0.83 and 0.50"),
    ),
)
