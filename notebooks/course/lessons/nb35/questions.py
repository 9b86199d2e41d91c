"""The questions of notebook 35, the GPU runs later."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "35.line",
        "Three classes, two rows, and the labels 0 and 3. Which line of the step raises the error?",
        ("F.cross_entropy", "loss.backward", "loss.item"),
    ),
    Question(
        "35.after",
        "A program catches the device-side assert and goes on with "
        '`torch.ones(1, device="cuda") + 1`. What does it get?',
        ("2", "the same error", "nothing, it waits"),
    ),
    Question(
        "35.waits",
        "`x` is on the GPU. At which of these lines does the program wait for the GPU?",
        ("x * (x > 0)", "x[x > 0]", "x[:2]"),
    ),
    Question(
        "35.repair",
        "The copy runs on the stream `side`, the sum on the stream `main`. Which line between them repairs the race?",
        ("side.wait_stream(main)", "main.wait_stream(side)", "either of them"),
    ),
    Question(
        "35.dropped",
        "The loop waits for each copy before it adds up, and binds `batch` anew in each turn. "
        "How many batches does it take until two streams use the same memory without order?",
        ("two", "three", "however many: there is no race"),
    ),
)
