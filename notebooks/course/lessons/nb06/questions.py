"""The questions of notebook 06, memory on one GPU and on each rank."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "06.most",
        "When the forward of the second step ends, which of these takes most of the GPU's memory?",
        ("weights", "optimizer", "batch", "activations"),
    ),
    Question(
        "06.recompute",
        "Each of the six blocks keeps its input only, and is computed again in backward. How far does the peak of the "
        "whole step fall?",
        ("by a sixth", "by about a third", "by five sixths"),
    ),
    Question(
        "06.smi",
        "No tensor is left on the GPU, and the process goes on. What does `nvidia-smi` show for it?",
        ("nothing", "the CUDA context alone", "what the allocator keeps, and the CUDA context"),
    ),
    Question(
        "06.ranks",
        "Two ranks under DDP, half of the rows each. What does each hold at its peak, compared with one GPU alone?",
        ("half as much", "about four fifths", "as much"),
    ),
)
