"""The questions of notebook 21, Judge it."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "21.floor",
        "The detector is judged twice: by all 1,062 boxes, 680 of them wrong, and by the 406 with a score of 0.5 or "
        "more, 52 of them wrong. Which list has the higher AP50?",
        ("all 1,062", "the 406 surest", "both the same"),
    ),
    Question(
        "21.squared",
        "Every score is squared, so 0.9 becomes 0.81 and 0.5 becomes 0.25. All boxes stay. What does AP do?",
        ("it falls", "it stays as it is", "it rises"),
    ),
    Question(
        "21.sizes",
        "A hundred wrong boxes of 60 x 60 pixels, one in each picture, and no box is surer. Which of AP, AP_small and "
        "AP_medium fall?",
        ("all three", "AP and AP_medium", "AP alone"),
    ),
    Question(
        "21.mean",
        "Three ranks, the same detector, the same number of pictures on each. Compared with the AP of all pictures, "
        "the mean of the three ranks' APs is",
        ("the same", "larger", "smaller"),
    ),
    Question(
        "21.repair",
        "Two repairs, made with the help of the truth. One gives every box that lies on a digit the right name. The "
        "other moves every box with the right name exactly onto its digit. Which one raises AP more?",
        ("the right names", "the exact boxes", "both about as much"),
    ),
)
