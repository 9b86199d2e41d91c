"""The questions of notebook 24, Grouped convolution."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "24.pack",
        "With `cat` all 96 output channels are those of the loop. How many are with `stack`?",
        ("96", "12", "8", "2"),
    ),
    Question(
        "24.other_numbers",
        "Now `Parallel_Bottleneck` is made with other numbers of groups. With `groups=24`, "
        "what does the first of 24 branches read?",
        (
            "its own channels",
            "half of its own channels",
            "its own and those of a second branch",
            "nothing: an error",
        ),
    ),
    Question(
        "24.two_gpus",
        "Output, gradient of the input, gradient of the weight: which of them, put together from both GPUs, "
        "are those of one GPU?",
        ("all three", "output and gradient of the input", "the output alone", "none of them"),
    ),
    Question(
        "24.batchnorm",
        "Do the packed block and the loop agree in training mode?",
        (
            "in outputs, gradients and running statistics",
            "in outputs and gradients, not in running statistics",
            "no: the statistics of the branches mix",
        ),
    ),
)
