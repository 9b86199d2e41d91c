"""The questions of notebook 22, Your own boxes."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "22.raise",
        "A loader turns the text of each edge into a number with `float`, opens the picture, and checks nothing. How "
        "many of these seven stop it with an error?",
        ("one", "three", "five", "seven"),
    ),
    Question(
        "22.log",
        "The edges of a box are x1 = x2, so the target for its width is the logarithm of 0. The prediction is 0. What "
        "are the smooth L1 loss and its gradient?",
        ("nan and nan", "inf and nan", "inf and 1"),
    ),
    Question(
        "22.which",
        "The loss is a sum of four: rpn_objectness, rpn_box, head_class and head_box. Which of them are nan?",
        ("all four", "rpn_box and head_box", "rpn_box alone"),
    ),
    Question(
        "22.audit",
        "This audit looks at every picture and every box. How many of the seven faults does it miss?",
        ("none", "one", "two", "three"),
    ),
)
