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
        "22.which",
        "The loss is a sum of four: rpn_objectness, rpn_box, head_class and head_box. Which of them are nan?",
        ("all four", "rpn_box and head_box", "rpn_box alone"),
    ),
    Question(
        "22.audit",
        "This audit looks at every picture and every box. How many of the seven faults does it miss?",
        ("none", "one", "two", "three"),
    ),
    Question(
        "22.weights",
        "From those weights: 60 steps of four pictures, with new layers for the classes. What is AP50 on the pictures "
        "that were held out?",
        ("below 0.1", "0.1 to 0.5", "0.5 to 0.8", "above 0.8"),
    ),
)
