"""The questions of notebook 27, Learning rates: groups and schedules."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "27.filter",
        "You count `sum(p.numel() for p in logits_params)`, then build the optimizer. How many tensors has group 0?",
        ("4", "0", "none: SGD raises an error"),
    ),
    Question(
        "27.ids",
        "`conv_X_params` is a list of ids. What does `net.conv_X_params.parameters()` do?",
        ("AttributeError", "it trains conv_X at twice the rate", "it trains everything at twice the rate"),
    ),
    Question(
        "27.warmup",
        "The base rate is 0.1. What is the rate in the first epoch, the first of the warm-up?",
        ("0.1", "0.02", "something small that grows"),
    ),
    Question(
        "27.complex",
        "Training goes one step past the end: iteration 101 of 100. What does `lr_poly` return?",
        ("zero", "a negative number", "a complex number"),
    ),
    Question(
        "27.damage",
        "All parts at rate 0.1, from the first step on. What happens to the proposal network's loss, which was low?",
        ("it stays low", "it falls further", "it rises several times over"),
    ),
)
