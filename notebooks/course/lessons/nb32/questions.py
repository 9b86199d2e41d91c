"""The questions of notebook 32, export and deploy."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "32.peak",
        "The same heat map goes through the file of opset 9, in onnxruntime. Where is its peak?",
        ("at the same pixel", "at a neighbour, half a pixel off after rounding", "4 pixels away", "there is an error"),
    ),
    Question(
        "32.opset",
        "The call asks for `opset_version=11`, and PyTorch's default exporter raises no error. Which "
        "operator set is in the file?",
        ("9", "11", "18"),
    ),
    Question(
        "32.pool",
        "The same formula for 10 cells to 4. What does the fixed pooling give?",
        ("the same numbers", "the right shape, other numbers", "another shape"),
    ),
    Question(
        "32.shard",
        "Under tensor parallelism rank 0 has half of the hidden units: half of the rows of the first weight, and half "
        "of the columns of the second. It exports the layers that it holds. What comes out?",
        ("the exporter refuses", "half of the classes", "all classes, and other numbers", "what the whole net gives"),
    ),
)
