"""The questions of notebook 18, Pinning a detector to its GPUs."""

from course.learn.question import Question

QUESTIONS = (
    Question(
        "18.breaks",
        "The repair is taken back: eight places with a bare `.cuda()`. How many of them break under `nn.DataParallel`?",
        ("0", "1", "4", "8"),
    ),
    Question(
        "18.argmax",
        "`argmax` has been made on the CPU. Where does `argmax.cuda(argmax.get_device())` put it?",
        ("on the device of the features", "on cuda:0", "nowhere, it raises an error"),
    ),
    Question(
        "18.rpn_gradient",
        "On one GPU the RPN's weights have `grad is None` after this. And under `nn.DataParallel` on two?",
        ("None, too", "a tensor of zeros", "the gradient of the RPN's own loss"),
    ),
    Question(
        "18.culprit",
        "Which one runs forward, raises in backward under the old rule, and is right today?",
        ("gather itself", "class weights on cuda:0", "pooling, .cuda() in backward", "replicas kept over a step"),
    ),
)
