"""The questions of notebook 19, The cold case."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "19.today",
        "The guide's detector with all of its repairs, two GPUs, the losses gathered. What does `backward` do today?",
        (
            "it raises an error",
            "it runs, and the gradients are wrong",
            "it runs, and the gradients are right",
        ),
    ),
    Question(
        "19.seven",
        "How many of these seven let forward run and then stop in backward because of devices?",
        ("0", "1", "2", "4"),
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
)
