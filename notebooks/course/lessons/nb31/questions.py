"""The questions of notebook 31, weights from elsewhere."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "31.order",
        "In the run above the two files changed places for the first layer. Now they change places for all layers. "
        "How often is the joined net right?",
        ("about as often as above", "about half of the time", "as often as the trained net"),
    ),
    Question(
        "31.head",
        "This time the last layer was cut as well: rank 0 has classes 0 to 4, rank 1 has 5 to 9. "
        "The files change places for all layers. How often is the joined net right?",
        ("nearly never", "about half of the time", "as often as the trained net"),
    ),
    Question(
        "31.square",
        "`hidden` has 6 inputs and 6 outputs, and Paddle's weight is copied as it is. Who notices?",
        ("`load_state_dict`, by the shape", "`load_state_dict`, by the name", "nobody but the outputs"),
    ),
)
