"""The questions of notebook 14, Proposals and NMS."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "14.best",
        "The first picture has three digits. How many of them do the twenty best anchors stand for?",
        ("1", "2", "3"),
    ),
    Question(
        "14.threshold",
        "Three digits, twenty boxes. How many stay with a threshold of 0.7, and how many with 0.5?",
        ("3 and 3", "4 and 11", "11 and 4"),
    ),
    Question(
        "14.waits",
        "Eight pictures. How often does the layer of 2017 make the host wait for the GPU?",
        ("1", "8", "16"),
    ),
    Question(
        "14.chain",
        "A overlaps B, B overlaps C, A and C are apart. A has the best score, C the worst. Which are kept?",
        ("A", "A and C", "A, B and C"),
    ),
)
