"""The questions of notebook 07, DDP by hand."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "07.bare_cuda",
        'Rank 1 of two says `torch.ones(3).to("cuda")`, and nothing was done about GPUs before. Where is its tensor?',
        ("cuda:0", "cuda:1", "it raises an error"),
    ),
    Question(
        "07.when",
        "Two ranks, different rows, one step with DistributedDataParallel. After which call do both ranks hold equal "
        "gradients for the first time?",
        ("loss.backward()", "optimizer.step()", "the next forward"),
    ),
    Question(
        "07.one_rank",
        "Ten digits, four ranks, `DistributedSampler` as it is. How many digits does rank 0 see in one epoch?",
        ("10", "3", "2"),
    ),
    Question(
        "07.batch",
        "The configuration says `batch_size=4`, and each of four ranks makes its DataLoader with it. How many rows are "
        "behind one optimizer step?",
        ("1", "4", "16"),
    ),
    Question(
        "07.buffers",
        "Each of two ranks has seen 5 of the 10 digits. From which mean does the next forward of rank 1 start?",
        ("its own digits'", "rank 0's digits'", "all ten digits'"),
    ),
)
