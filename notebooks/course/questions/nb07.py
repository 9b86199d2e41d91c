"""The questions of notebook 07, DDP that works."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "07.bare_cuda",
        "Rank 1 has not called set_device. Where is `torch.ones(3, device='cuda')`?",
        ("cuda:0", "cuda:1"),
    ),
    Question(
        "07.before_step",
        "After backward(), before step(): do both ranks hold equal gradients?",
        ("equal", "different"),
    ),
    Question(
        "07.sum_factor",
        "The loss is a sum over rows. DDP's gradients against those of one process are",
        ("equal", "half", "double"),
    ),
    Question(
        "07.padding",
        "Ten pictures, four ranks, `DistributedSampler` as it is. How many pictures do the ranks see together?",
        ("8", "10", "12"),
    ),
    Question(
        "07.buffers",
        "Each rank has seen 5 of 10 digits. Which mean does the next forward of rank 1 start from?",
        ("its own digits'", "rank 0's digits'", "all ten digits'"),
    ),
)
