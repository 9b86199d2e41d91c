"""The questions of notebook 26, Eighty small layers at once."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "26.found",
        "One layer reads its groups by `[c % 4 for c in range(10)]`, in place of `[0, 0, 0, 1, 1, 2, 2, 2, 3, 3]`. "
        "All weights are right. What becomes of the ten digits?",
        (
            "an error about shapes",
            "all are found a little less often",
            "none is found any more",
            "two are found as before, and the others hardly ever",
        ),
    ),
    Question(
        "26.init",
        "Input of standard deviation 1. How does the spread of the outputs change from 5 classes to 80, in "
        "the same layer?",
        ("not at all", "it grows fourfold", "it shrinks to a quarter"),
    ),
    Question(
        "26.messages",
        "80 Linears with `fully_shard` on each, and one layer with all their weights stacked and `fully_shard` on it. "
        "How many collectives does a step take, forward and backward?",
        ("80 and 1", "160 and 2", "240 and 2", "160 and 160"),
    ),
)
