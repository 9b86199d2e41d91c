"""The questions of notebook 12, A detector in one page."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "12.proposals",
        "The third picture has three digits. How many proposals does it send to the next network?",
        ("3", "12", "48"),
    ),
    Question(
        "12.gradient",
        "`backward()` starts from the losses of the box head alone. Which parts of the detector get a gradient?",
        ("box head", "backbone and box head", "backbone, RPN and box head"),
    ),
    Question(
        "12.empty",
        "Three pictures without a single digit. How many of the five tensors that `training_step` returns have a "
        "different shape?",
        ("none", "3 of 5", "5 of 5"),
    ),
    Question(
        "12.two",
        "Three pictures on two GPUs. `anchors` is (768, 4), the same for all pictures. Where is it?",
        ("on cuda:0 only", "on both, made twice", "on both, copied from cuda:0"),
    ),
)
