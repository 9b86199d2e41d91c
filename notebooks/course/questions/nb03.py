"""The questions of notebook 03, A loss is a sum and a count."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "03.shape_on_8",
        "`forward` returns a 0-d loss. What shape does `nn.DataParallel` return for ten rows on 8 GPUs?",
        ("()", "(8,)", "(5,)", "(10,)"),
    ),
    Question(
        "03.mean_of_means",
        "The mean of the ten losses is 4.5. What is the mean of the four means?",
        ("4.0", "4.5", "5.25", "9.0"),
    ),
    Question(
        "03.normalisers",
        "Which of the three gives the same loss on 1, 2, 4 and 8 GPUs?",
        ("all three", "only the global one", "global and per image", "none"),
    ),
)
