"""The questions of notebook 03, A loss is a sum and a count."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "03.two_places",
        "On 2, 3, and so on to 8 GPUs: which of the two losses has the gradient of one GPU every time?",
        ("outside", "inside", "outside and inside", "neither"),
    ),
    Question(
        "03.mean_of_means",
        "The mean of the ten losses is 4.5. What is the mean of the four means?",
        ("4.0", "4.5", "5.25", "9.0"),
    ),
    Question(
        "03.normalisers",
        "Which way of dividing gives the same loss on 1, 2, 4 and 8 GPUs?",
        ("per GPU and per row and once", "once", "per row and once", "per GPU and once"),
    ),
)
