"""The questions of notebook 20, Train it."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "20.which",
        "The same detector, the same pictures in the same order, 100 steps. In pictures that neither has seen, which "
        "run finds more of the digits?",
        ("run A, whose loss is larger", "run B, whose loss is smaller", "both find about as many"),
    ),
    Question(
        "20.part",
        "From step 20 to step 50 the loss of run A more than doubles. Which of its four parts rise?",
        ("the two of the RPN", "the two of the head", "all four"),
    ),
    Question(
        "20.late",
        "From step 800 to step 2,000 the learning rate falls to 0. Which number grows more in these steps: AP50, for "
        "which half of the overlap is enough, or AP, which asks for up to 0.95 of it?",
        ("AP50", "AP", "neither grows by more than 0.01"),
    ),
    Question(
        "20.forgotten",
        "The run is stopped after 6 steps and goes on from a checkpoint. The checkpoint has everything but the state "
        "of the optimizer. Which losses after the restart differ from those of a run that never stopped?",
        ("none", "all", "all but the first"),
    ),
)
