"""The questions of notebook 09, several machines."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "09.root_cause",
        "Rank 1 is killed on the second machine. Which rank does `torchrun` report as Root Cause on the first one?",
        ("rank 1", "rank 0", "none, because nothing is wrong there"),
    ),
    Question(
        "09.last_line",
        "Each rank prints its steps. What is the last line that the killed rank leaves in its own log?",
        ("Killed", "KeyboardInterrupt", "step 2"),
    ),
    Question(
        "09.set_device",
        "Two machines with two GPUs each, so there are ranks 0 to 3. Each calls `torch.cuda.set_device(rank)`. "
        "Where is rank 2 then?",
        ("on cuda:0", "CUDA error: invalid device ordinal", "on cuda:2"),
    ),
    Question(
        "09.steps",
        "Rank 1 is killed in step 8, and the last checkpoint holds step 5. Rank 0 is unhurt, on a different machine. "
        "Which steps does rank 0 take?",
        ("1 to 12, once each", "1 to 7, waits, then 8 to 12", "1 to 7, then 6 to 12", "1 to 7, then 1 to 12"),
    ),
)
