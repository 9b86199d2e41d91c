"""The questions of notebook 13, Anchors and targets."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "13.three_labels",
        "Three anchors have the labels 1, 0 and -1, and all three logits are 0. How many times as hard as at the logit "
        "of the background does the binary cross-entropy pull at that of the -1?",
        ("it raises an error", "0", "1", "3"),
    ),
    Question(
        "13.narrow",
        "A narrow object overlaps its best anchor by an IoU of 0.24. Every other anchor overlaps it less. Which label "
        "does this anchor get in a Faster R-CNN?",
        ("0", "-1", "1"),
    ),
    Question(
        "13.share",
        "At the start of the training every logit is 0. With which of three losses do the positive anchors have the "
        "largest share of the gradient?",
        ("all anchors", "a sample", "focal"),
    ),
    Question(
        "13.crowd",
        "Digit A overlaps anchors 1 and 2 by 0.8 and 0.7, digit B overlaps them by 0.7 and 0.2. The thresholds are 0.6 "
        "and 0.3, with the rescue. To which digits do anchors 1 and 2 have to move?",
        ("A and A", "A and B", "B and A"),
    ),
)
