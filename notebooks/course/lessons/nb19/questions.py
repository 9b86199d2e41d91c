"""The questions of notebook 19, The cold case."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "19.today",
        "The guide's detector with all of its repairs, two GPUs, the losses gathered. What does `backward` do today?",
        (
            "it raises an error about devices",
            "it raises a different error",
            "it runs, and the gradients are wrong",
            "it runs, and the gradients are right",
        ),
    ),
    Question(
        "19.join",
        "Which of these lets forward run and then stops in backward because of devices?",
        ("gather itself", "output_device = [0]", "losses added where they are", "loss.data", "none of them"),
    ),
    Question(
        "19.pooling",
        "The bare `.cuda()`, the shared object, the way over the CPU: how many of the three fit the report today?",
        ("0 of 3", "1 of 3", "2 of 3", "3 of 3"),
    ),
    Question(
        "19.how_many",
        "Device 0 is current in every backward. How many of the ten suspects fit the report now?",
        ("1", "2", "3", "5"),
    ),
    Question(
        "19.notices",
        "Under the rule of 2017 the backward of replica 1 makes its gradient on `cuda:0`. Who stops this run, in "
        "the torch of today?",
        (
            "the pooling, when it makes it",
            "the engine, when the pooling returns it",
            "the layer below, when it needs it",
            "nobody, it is copied to cuda:1",
        ),
    ),
)
