"""The questions of notebook 14, Proposals and NMS."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "14.once",
        "Twelve boxes on three digits. Every box that overlaps a better one by more than 0.4 is removed. On how many "
        "of the digits is there still a box?",
        ("3", "2", "1"),
    ),
    Question(
        "14.second",
        "Two boxes are kept after the first round: 1 and 8. How many are kept after the second?",
        ("2", "3", "4"),
    ),
    Question(
        "14.silent",
        "The 192 best boxes of each of 400 pictures, threshold 0.7: in how many pictures does one round keep other "
        "boxes than NMS? And what becomes of the detector's AP, if it stops after one round?",
        (
            "1 of 400, and AP does not fall",
            "40 of 400, and AP does not fall",
            "400 of 400, and AP does not fall",
            "400 of 400, and AP falls by more than 0.05",
        ),
    ),
    Question(
        "14.without",
        "One network learns that every box on a digit is an object, the other one that one box for each digit is. How "
        "many boxes does each of them leave on a digit that it finds, without NMS?",
        ("about 13 and about 13", "about 13 and about 4", "about 13 and about 1", "about 4 and about 1"),
    ),
)
