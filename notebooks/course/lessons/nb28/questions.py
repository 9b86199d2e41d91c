"""The questions of notebook 28, Determinism: the same run twice."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "28.masks",
        "`nn.DataParallel` gives rows 0 to 3 to one GPU and rows 4 to 7 to the other. Which units does each GPU drop "
        "in its four rows, after the six lines?",
        ("each GPU its own", "together, what one GPU alone would drop in eight rows", "both the same"),
    ),
    Question(
        "28.rank_state",
        "A checkpoint keeps the generator state of rank 0. After the restart both ranks load it, and draw. Who draws "
        "what it would have drawn without the stop?",
        ("both ranks", "rank 0, and rank 1 draws the same as rank 0", "neither rank"),
    ),
    Question(
        "28.orders",
        "Six float32 numbers have 720 orders. How many different sums do they give?",
        ("1", "about ten", "hundreds"),
    ),
    Question(
        "28.apart",
        "The same start and the same batches, on one GPU and on two under DataParallel, for 200 steps. What has become "
        "of the two nets?",
        (
            "all weights are equal",
            "a few weights differ",
            "most weights differ; the nets are equally good",
            "most weights differ; one net is clearly better",
        ),
    ),
)
