"""The questions of notebook 13, Anchors and targets."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "13.three_labels",
        "Three anchors have the labels 1, 0 and -1, and all three logits are 0. What does the binary cross-entropy do?",
        (
            "it raises an error",
            "it pushes the logits of 1 and 0, and leaves that of -1 alone",
            "it pushes all three equally hard",
            "it pushes that of -1 hardest",
        ),
    ),
    Question(
        "13.narrow",
        "A narrow object overlaps its best anchor by an IoU of 0.24. Every other anchor overlaps it less. Which label "
        "does this anchor get in a Faster R-CNN?",
        ("0", "-1", "1"),
    ),
    Question(
        "13.plus_one",
        "Deltas are encoded with the + 1 and decoded without it. The right edge has to move by half of the anchor's "
        "width. By how much does it miss its place?",
        ("one pixel", "about half a pixel, at any size", "more, the larger the anchor is"),
    ),
    Question(
        "13.waits",
        "Eight pictures, whose true boxes are on the CPU. How often does Python wait for a copy between CPU and GPU: "
        "with the layer of 2017, and with the batch?",
        ("8 and 0", "8 and 2", "40 and 2", "40 and 16"),
    ),
)
