"""The questions of notebook 11, a mesh of devices."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "11.relu",
        "Each GPU multiplies its half of the inputs, applies ReLU to what it has, and then both are added up. What "
        "comes out at the end?",
        ("the same, up to rounding", "different numbers, and no error", "an error about shapes"),
    ),
    Question(
        "11.sends",
        "`A` is cut by columns and `B` by rows, on two GPUs. How many collectives does the forward pass need?",
        ("none", "one", "two", "one for each row of the batch"),
    ),
    Question(
        "11.mesh",
        "A tensor of four rows lies on the mesh of 2 x 2 with the placement `[Shard(0), Replicate()]`. What does "
        "`cuda:1` hold?",
        ("row 1", "rows 0 to 1", "rows 2 to 3", "rows 0 to 3"),
    ),
    Question(
        "11.network",
        "FSDP divides the model over all 16 GPUs, HSDP over the eight of each machine. How long does a step of HSDP "
        "take, compared with FSDP?",
        ("as long", "about half as long", "about an eighth"),
    ),
)
