"""The questions of notebook 25, Einsum, read aloud."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "25.two_gpus",
        "The same layer and the same two pictures, with `nn.DataParallel` on two GPUs. What comes back?",
        ("an error", "(2, 64, 16)", "(64, 64, 16)", "(128, 64, 16)"),
    ),
    Question(
        "25.as_meant",
        "One GPU, and a batch of 64 pictures. How many pictures get the numbers that were meant?",
        ("none of them, because it raises", "none of them, and nothing raises", "one of them", "all 64"),
    ),
    Question(
        "25.letter_i",
        "Now `i` is cut: each rank has half of the inputs, and the half of every weight that belongs to them. "
        "What has to be done with the two results?",
        ("put side by side", "added", "averaged"),
    ),
    Question(
        "25.letter_g",
        "Now `g` is cut: each rank has half of the groups, with their weights. "
        "What has to be added up over the GPUs in a whole step, forward and backward?",
        ("nothing", "the output", "the gradient of the weight", "the gradient of x and the gradient of the weight"),
    ),
)
