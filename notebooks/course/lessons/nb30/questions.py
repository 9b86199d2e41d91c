"""The questions of notebook 30, Checkpoints and foreign weights."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "30.update",
        "`model_dict = model.state_dict()`, `model_dict.update(pretrained_dict)`, "
        "`model.load_state_dict(model_dict)`: the file has no last layer. What happens?",
        ("an error names the missing layer", "all is well, and the last layer stays untrained"),
    ),
    Question(
        "30.arrays",
        "How many different functions does a file of arrays need to call when it is unpickled?",
        ("0", "2", "9"),
    ),
    Question(
        "30.square",
        "`hidden` has 6 inputs and 6 outputs. Somebody forgets to transpose its weight. Who notices?",
        ("the loader, by the shape", "nobody but the outputs"),
    ),
)
