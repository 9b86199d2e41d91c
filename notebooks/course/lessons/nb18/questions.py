"""The questions of notebook 18, Pinning a detector to its GPUs."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "18.argmax",
        "`argmax` has been made on the CPU, one line above; the features are on cuda:1, and cuda:0 is current. Where "
        "does `argmax.cuda(argmax.get_device())` put it?",
        ("cuda:0", "cuda:1", "an error"),
    ),
    Question(
        "18.breaks",
        "The repair is taken back: eight places with a bare `.cuda()`. How many of them break under `nn.DataParallel`?",
        ("0", "1", "4", "8"),
    ),
    Question(
        "18.no_object",
        "In an image without objects all regions are background. Its class weights are made by the last of the lines "
        "above. With equal scores the usual class loss is 2.398. What is the loss of this image?",
        ("0.000", "2.398", "23980.000", "nan"),
    ),
    Question(
        "18.rpn_gradient",
        "The guide's loss of two pictures, and its backward, on two GPUs by `nn.DataParallel`. What is then the "
        "gradient of the weight that makes the RPN's scores?",
        ("None", "a gradient", "a tensor of zeros"),
    ),
)
