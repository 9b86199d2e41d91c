"""The questions of notebook 05, A loop of one's own."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "05.kept",
        "The replicas were made before the loop, and the optimizer trains `model`. What do they answer after 20 steps?",
        (
            "both as the trained model",
            "replica 0 as the trained model, replica 1 as before the training",
            "both as before the training",
        ),
    ),
    Question(
        "05.second_step",
        "The replicas are made once, now with gradients, and every step trains through them. What does the second step "
        "give?",
        ("the loss of the first step again", "a smaller loss", "an error"),
    ),
    Question(
        "05.silent",
        "Replica 1 is made once, and the model itself works on `cuda:0`. Compared with new replicas in each step: by "
        "how much does the model's own loss on the ten digits fall in twenty steps?",
        ("just as much", "about a third as much", "not at all"),
    ),
    Question(
        "05.no_devices",
        "The inputs are on `cuda:0` and `cuda:1`, each where its replica is, and `parallel_apply` gets no `devices`. "
        "Where does the bare `.cuda()` of the replica on `cuda:1` put its input?",
        ("cuda:0", "cuda:1, because its input is there already", "cuda:1, because its weights are there"),
    ),
)
