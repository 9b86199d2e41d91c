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
        "The `DataLoader` of a script has `batch_size=4`, and there are two GPUs. How many rows are behind one "
        "`optimizer.step()`, under DataParallel and under DDP?",
        ("DataParallel 4, DDP 4", "DataParallel 4, DDP 8", "DataParallel 8, DDP 8"),
    ),
    Question(
        "07.overflow",
        "Two ranks train in float16 with DDP and a GradScaler each. The gradients of rank 1 overflow, those of rank 0 "
        "would not. Who leaves out the step?",
        ("none", "rank 1", "both ranks"),
    ),
)
