"""The questions of notebook 02, DataParallel in four calls."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "02.second_step",
        "`net` takes 5,096 bytes, weights and buffer. A first step has run on two GPUs, and no weight has "
        "changed since. How many bytes of `net` does a second step copy to `cuda:1`?",
        ("0", "2548", "5096", "10192"),
    ),
    Question(
        "02.gradient",
        "On one GPU, A is the gradient of the mean loss of digits 0 to 4, and B that of digits 5 to 9. Two GPUs "
        "compute the mean loss of all ten. What does `net.hidden.weight.grad` hold after `backward`?",
        ("A", "(A + B) / 2", "A + B", "A on cuda:0, and B on cuda:1"),
    ),
    Question(
        "02.parameters",
        "How many parameters does a replica list when it is asked, inside `forward`?",
        ("0", "2", "4"),
    ),
    Question(
        "02.batchnorm",
        "BatchNorm subtracts a mean. Which one is subtracted from digit 0, on two GPUs, in training mode?",
        ("the mean of digits 0 to 9", "the mean of digits 0 to 4", "the running mean"),
    ),
)
