"""The questions of notebook 30, checkpoints."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "30.strict",
        "A fresh net reads the file with `load_state_dict(weights, strict=False)`. What happens?",
        (
            "an error names what does not fit",
            "it is right as often as the trained net",
            "it is right as often as a net that was never trained",
        ),
    ),
    Question(
        "30.learned",
        "A different script saves `dict(net.module.named_parameters())`, so all that was learned is in the file, under "
        "the right names. A fresh net reads it with `strict=False`, and is evaluated. How often is it right?",
        ("92 %", "about two times in three", "one time in ten"),
    ),
    Question(
        "30.raised",
        "The file lacks the last layer, and `load_state_dict(weights)` raises, as it should. "
        "The program catches the error and goes on. Which weights does the first layer have?",
        ("those it was made with", "those of the file"),
    ),
    Question(
        "30.where",
        "Rank 0 has saved a tensor of `cuda:0`. Rank 1, whose own GPU is `cuda:1`, calls `torch.load(file)`. "
        "Where does it find the tensor?",
        ("cpu", "cuda:0", "cuda:1"),
    ),
)
