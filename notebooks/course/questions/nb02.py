"""The questions of notebook 02, DataParallel in four calls."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "02.output_cpu",
        'torch warns: use "cpu" instead of -1. What does `data_parallel(net, digits, [0, 1], output_device="cpu")` do?',
        ("output on the CPU", "output on cuda:0", "it raises an error"),
    ),
    Question(
        "02.bytes_on_gpu_1",
        "`net` takes 5,096 bytes, weights and buffer. How many of them does `cuda:1` hold while its replica runs?",
        ("0", "2548", "5096", "10192"),
    ),
    Question(
        "02.seen",
        "On four GPUs, ten rows, after one step: how long is the list `probe.seen`?",
        ("0", "1", "4"),
    ),
    Question(
        "02.count",
        "And what does the buffer `probe.count` say?",
        ("0", "3", "10"),
    ),
    Question(
        "02.parameters",
        "How many parameters does a replica list when asked, inside forward?",
        ("0", "1", "4"),
    ),
)
