"""The questions of notebook 25, Einsum instead of many FC layers."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "25.conv1d_weights",
        "80 Linears of 256 -> 128 have 2,621,440 weights. How many has this Conv1d?",
        ("2,621,440", "32,768", "209,715,200", "671,088,640"),
    ),
    Question(
        "25.silent",
        "One picture, 64 classes, 64 channels in, 16 out: input (1, 64, 64), weight (64, 64, 16). What comes out?",
        ("an error", "(1, 64, 16), right", "(1, 64, 16), wrong", "(64, 64, 16)"),
    ),
    Question(
        "25.init",
        "Input of standard deviation 1. How does the spread of the outputs change from 5 classes to 80, in "
        "the same layer?",
        ("not at all", "it grows fourfold", "it shrinks to a quarter"),
    ),
    Question(
        "25.faster",
        "80 Linears of 64 -> 16, batch 2, forward and backward on the CPU: how much faster is GroupLinear "
        "than the loop?",
        ("slower", "less than 5 times", "more than 5 times"),
    ),
)
