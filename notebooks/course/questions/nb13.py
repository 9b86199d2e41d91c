"""The questions of notebook 13, Anchors and targets."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "13.count",
        "128 x 128 pixels, one cell for 8 x 8 of them, three anchors a cell. How many anchors?",
        ("256", "768", "49152"),
    ),
    Question(
        "13.rescue",
        "The picture has five digits. With the threshold of 0.6 alone, how many of them have an anchor of their own?",
        ("3", "4", "5"),
    ),
    Question(
        "13.waits",
        "Eight pictures. How often does the host wait for the GPU: the layer of 2017, and the batch?",
        ("1, 1", "8, 0", "8, 8", "64, 0"),
    ),
    Question(
        "13.swapped",
        "x and y of all true boxes are swapped, anchors are as before; the picture is square. What does the layer do?",
        ("it raises", "about as many positives, of other anchors", "no positives"),
    ),
)
