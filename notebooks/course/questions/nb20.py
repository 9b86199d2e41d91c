"""The questions of notebook 20, Train Faster R-CNN lite on two GPUs."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "20.values",
        "Seven images on two GPUs. The detector returns its losses as sums and counts. How many numbers come "
        "back as the sum called `rpn_objectness`?",
        ("1", "2", "7"),
    ),
    Question(
        "20.reduce",
        "Four images on one device, three on the other. Which total equals the loss of one device with all seven?",
        ("both", "sums over counts only", "the mean of the devices' means only"),
    ),
    Question(
        "20.curve",
        "Eight steps on the CPU and eight on two GPUs, same seed, same batch of six. How do the two loss "
        "curves differ?",
        ("not visibly", "two GPUs go down twice as fast", "two GPUs are noisier"),
    ),
    Question(
        "20.total",
        "The detector learns. What does the sum of its four losses do over the first two hundred steps?",
        ("it falls all the way", "it rises, then stays", "it stays where it was"),
    ),
    Question(
        "20.kinds",
        "Boxes that this detector is sure of (a score of 0.5 or more) and that are wrong: of which kind are most?",
        ("background", "localisation", "wrong class", "duplicate"),
    ),
)
