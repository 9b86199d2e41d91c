"""The questions of notebook 10, Sharding: FSDP2."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "10.product",
        "A batch of 8 rows, four ranks, a layer of 16 inputs and 16 outputs under `fully_shard`. "
        "What does rank 0 multiply in this layer?",
        ("2 rows by all 16 outputs", "8 rows by 4 outputs", "2 rows by 4 outputs"),
    ),
    Question(
        "10.gathers",
        "Four layers, each under `fully_shard`. How often is the weight of one layer gathered in a step, forward and "
        "backward together?",
        ("once", "twice", "four times"),
    ),
    Question(
        "10.kinds",
        "The same net and the same rows for each rank, on four ranks. What takes as much memory under `fully_shard` "
        "as it does under DDP?",
        ("the gradients", "the optimizer's state", "the activations", "nothing: all of it is a quarter"),
    ),
    Question(
        "10.early",
        "The optimizer is made first, and then the model is sharded. What happens in the loop?",
        ("the first step raises", "each rank trains its own part", "the loss stays as it is, without an error"),
    ),
)
