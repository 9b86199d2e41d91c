"""The questions of notebook 16, RoI pooling: a Function with a memory."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "16.between",
        "One call, one backward, as in 2017. But between the two the program pools a validation picture under "
        "`torch.no_grad()`. What becomes of the gradient of the training picture?",
        (
            "it is right, because nothing is recorded under no_grad",
            "it is wrong, and nothing raises an error",
            "backward raises an error",
        ),
    ),
    Question(
        "16.two_gpus",
        "Ten digits, five on each of two GPUs, one call of `nn.DataParallel(layer)` and one backward. "
        "How does the step end?",
        (
            "as on one GPU",
            "forward raises an error",
            "backward raises an error",
            "with a wrong gradient and no error",
        ),
    ),
    Question(
        "16.where",
        "`forward` may keep the argmax in one of three other places. Each of two replicas is called once, and then "
        "comes backward. With which place are all ten gradients right?",
        (
            "an attribute of the Function's class, `Pool.argmax`",
            "an attribute of the layer, `self.argmax`",
            "a global variable",
            "none of them",
        ),
    ),
    Question(
        "16.gradcheck",
        "`torch.autograd.gradcheck` is run on the very first layer of this notebook, which keeps its argmax in `kept`. "
        "What does it say?",
        ("the gradient is right", "the gradient is wrong", "it raises a different error"),
    ),
    Question(
        "16.inplace",
        "One Function keeps the boxes as `ctx.rois = rois`, a second one with `save_for_backward`. Between forward and "
        "backward the program writes the next boxes into the same tensor. What happens?",
        (
            "both gradients are right: forward has read the boxes already",
            "both gradients are wrong, and nothing raises an error",
            "the first gradient is wrong without an error, and the second Function raises one",
            "both raise an error",
        ),
    ),
)
