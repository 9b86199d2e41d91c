"""The questions of notebook 16, A Function with a memory."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "16.moved",
        "`backward` now moves the argmax to the GPU of the gradient. Ten digits on two GPUs: how many of the ten "
        "gradients are wrong?",
        ("0", "5", "10", "an error"),
    ),
    Question(
        "16.between",
        "DDP on two ranks, one training picture each, one backward. Between forward and backward each rank pools the "
        "same validation picture under `torch.no_grad()`. What becomes of the gradient of the weights?",
        (
            "right, and equal on both ranks",
            "wrong, and equal on both ranks",
            "wrong, and different on both ranks",
        ),
    ),
    Question(
        "16.gradcheck",
        "`gradcheck` is run on the first Function of this notebook, which keeps its argmax on the class. What does it "
        "say?",
        ("the gradient is right", "the gradient is wrong", "two runs of backward differ"),
    ),
    Question(
        "16.inplace",
        "One Function keeps the boxes as `ctx.rois = rois`, a second one with `save_for_backward`. Between forward and "
        "backward the program writes the next boxes into the same tensor. How does backward end?",
        (
            "attribute: right; save_for_backward: right",
            "attribute: wrong; save_for_backward: wrong",
            "attribute: wrong; save_for_backward: an error",
            "attribute: an error; save_for_backward: an error",
        ),
    ),
)
