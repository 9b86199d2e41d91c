"""The questions of notebook 24, Grouped convolution."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "24.weight_shape",
        "What is the shape of `nn.Conv2d(6, 12, 3, groups=3).weight`?",
        ("(12, 2, 3, 3)", "(12, 6, 3, 3)", "(4, 2, 3, 3)", "(4, 6, 3, 3)"),
    ),
    Question(
        "24.six_groups",
        "What happens with `Parallel_Bottleneck(groups=6, group_channels=512)`?",
        ("it raises an error", "it runs, with the right connections", "it runs, with wrong connections"),
    ),
    Question(
        "24.residual_memory",
        "The result takes the memory of 12 `x`. Which of the five needs no more than that at its worst moment?",
        ("growing cat", "cat of 12", "stack + flatten", "repeat", "expand"),
    ),
    Question(
        "24.batchnorm",
        "Do the packed block and the loop agree in training mode, with batch statistics?",
        ("yes, in outputs, gradients and running statistics", "in outputs only", "no: the groups' statistics mix"),
    ),
    Question(
        "24.faster",
        "Twelve bottlenecks, forward and backward on the CPU. Where does the grouped form take less than half as long?",
        ("32 channels at 7 x 7", "256 channels at 14 x 14", "both", "neither"),
    ),
)
