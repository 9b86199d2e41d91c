"""The questions of notebook 32, Export and deploy: the file that computes something else."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "32.opset",
        "The call asks for `opset_version=11`, and PyTorch's default exporter obeys without an error. Which "
        "operator set is in the file?",
        ("9", "11", "18"),
    ),
    Question(
        "32.nine",
        "Bilinear, `align_corners=False` as the notes advise, opset 9, run in onnxruntime. What comes out?",
        ("the numbers of PyTorch", "other numbers, and no error", "an error"),
    ),
    Question(
        "32.pool",
        "The same formula for 10 cells to 4. What does the fixed pooling give?",
        ("the same numbers", "the right shape, other numbers", "another shape"),
    ),
    Question(
        "32.batch",
        "The file is traced with a batch of two. Fifty pictures are run one by one, in threes and in fives. "
        "For which is it equal to PyTorch?",
        ("none", "one by one only", "all"),
    ),
)
