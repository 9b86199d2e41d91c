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
        "14.chain",
        "Box 1 overlaps box 2, and box 2 overlaps box 3, by more than the threshold. Boxes 1 and 3 do not. Box 1 has "
        "the best score and box 3 the worst. Which boxes does torchvision's `nms` keep?",
        ("1", "1 and 3", "1, 2 and 3"),
    ),
    Question(
        "14.second",
        "Two boxes are kept after the first round: 1 and 8. How many are kept after the second?",
        ("2", "3", "4"),
    ),
    Question(
        "14.rounds",
        "192 boxes in each of eight pictures, suppressed in one batch. After how many rounds does nothing change any "
        "more?",
        ("fewer than 10", "about 50", "192, one for each box"),
    ),
    Question(
        "14.tail",
        "The best 192 of 768 boxes are sent to suppression, and the first 48 that it keeps are used. If all 768 were "
        "sent, how many of these 48 would be different boxes?",
        ("none", "about 5", "about half"),
    ),
)
