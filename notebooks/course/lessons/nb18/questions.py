"""The questions of notebook 18, Pinning a detector to its GPUs."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "18.argmax",
        "`argmax` has been made on the CPU, one line above. Where does `argmax.cuda(argmax.get_device())` put it?",
        ("on the device of the features", "on cuda:0", "nowhere, it raises an error"),
    ),
    Question(
        "18.left",
        "The guide has repaired all eight places, and `argmax` is put right. `cuda:0` is current, the weights are on "
        "`cuda:1`. How many of the places still send a tensor to `cuda:0`?",
        ("0", "1", "4", "8"),
    ),
    Question(
        "18.breaks",
        "The repair is taken back: eight places with a bare `.cuda()`. How many of them break under `nn.DataParallel`?",
        ("0", "1", "4", "8"),
    ),
    Question(
        "18.no_object",
        "An image without objects: all its regions are background. Its class weights are made by the last of the lines "
        "above. What is its loss today?",
        ("0", "the usual loss, about 2.4", "a very large number", "NaN"),
    ),
    Question(
        "18.rpn_gradient",
        "On one GPU the weight of the RPN's scores has `grad is None` after this. And on two, by `nn.DataParallel`?",
        ("None, too", "a tensor of zeros", "the gradient of the RPN's own loss"),
    ),
)
