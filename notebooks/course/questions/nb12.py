"""The questions of notebook 12, A detector in one page."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "12.anchors",
        "Pictures of 128 x 128, a cell for every 8 x 8 pixels, 3 anchors a cell. For how many places does "
        "the RPN answer?",
        ("48", "256", "768", "49152"),
    ),
    Question(
        "12.head_rows",
        "One picture has few digits, another many. For how many regions of each does the box head answer in training?",
        ("as many as it has digits", "as many as the RPN finds", "the same number for all"),
    ),
    Question(
        "12.empty",
        "A batch of three pictures without a single digit. How many tensors of the chart change their shape?",
        ("0", "5", "24"),
    ),
    Question(
        "12.two",
        "Three pictures on two GPUs. `anchors` is (768, 4), the same for all pictures. Where is it?",
        ("on cuda:0 only", "on both, made twice", "on both, copied from cuda:0"),
    ),
)
