"""The questions of notebook 06, Memory balance."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "06.one_row",
        "The same step, but `cuda:0` gets one row of 60 instead of 15. How far does its peak fall?",
        ("to that of the others", "by about half", "by less than a tenth"),
    ),
    Question(
        "06.between",
        "Between two steps, how much of the model lies on `cuda:1`?",
        ("all of its weights", "a quarter of its weights", "nothing"),
    ),
    Question(
        "06.inside",
        "`forward` now returns one loss for each picture instead of the scores. Each GPU gets 15 rows. "
        "What does `cuda:0` hold at its peak, compared with `cuda:1`?",
        ("as much", "about a third more", "more than twice as much"),
    ),
    Question(
        "06.none",
        "With 15 rows on each GPU, the fullest one holds 12.8 MB. With `first=0`, `cuda:0` computes no row at all. "
        "How much does the fullest GPU hold then?",
        ("a quarter less", "as much as before", "a quarter more"),
    ),
)
