"""The questions of notebook 07, DDP by hand."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "07.bare_cuda",
        'Rank 1 of two says `torch.ones(3).to("cuda")`, and nothing was done about GPUs before. Where is its tensor?',
        ("cuda:0", "cuda:1", "it raises an error"),
    ),
    Question(
        "07.when",
        "Two ranks under DistributedDataParallel, different rows. After `backward()` rank 0 calls `optimizer.step()`, "
        "and rank 1 leaves it out. What happens?",
        ("rank 0 waits in `step()`", "both ranks have the new weights", "rank 1 goes on with its old weights"),
    ),
    Question(
        "07.one_rank",
        "Ten digits, four ranks, `DistributedSampler` as it is. How many digits does rank 0 see in one epoch?",
        ("10", "3", "2"),
    ),
    Question(
        "07.batch",
        "On one GPU a script with `batch_size=4` takes 25 steps for its 100 rows. On four GPUs each rank makes the "
        "same `DataLoader`, with a `DistributedSampler`. How many steps does an epoch take now?",
        ("100", "25", "7"),
    ),
    Question(
        "07.buffers",
        "Each of two ranks has seen 5 of the 10 digits. From which mean does the next forward of rank 1 start?",
        ("its own digits'", "rank 0's digits'", "all ten digits'"),
    ),
)
