"""The questions of notebook 12, A detector in one page."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "12.order",
        "Here are four other lines, and each of them makes (3, 768, 5). `B` is the number of pictures, and there are "
        "three anchors at a cell. Which line gives every anchor its own five numbers?",
        (
            "`output.reshape(B, 5, -1).transpose(1, 2)`",
            "`output.reshape(B, 3, 5, -1).transpose(2, 3).reshape(B, -1, 5)`",
            "`output.permute(0, 2, 3, 1).reshape(B, -1, 5)`",
            "`output.permute(0, 3, 2, 1).reshape(B, -1, 5)`",
        ),
    ),
    Question(
        "12.attribute",
        "Now `cell_anchors` is a plain attribute of the RPN, a tensor on `cuda:0`. One GPU finds all 11 digits, as "
        "before. Two GPUs get the same three pictures, and `cuda:1` gets the third of them, which has 3 digits. How "
        "many are found?",
        ("11", "8", "an error"),
    ),
    Question(
        "12.gradient",
        "`make_proposals` runs under `torch.no_grad()`. `backward()` starts from the two losses of the box head alone. "
        "Which parts of the detector get a gradient?",
        ("box_head", "rpn, box_head", "backbone, box_head", "backbone, rpn, box_head"),
    ),
    Question(
        "12.empty",
        "Three pictures without a single digit. Which of the four losses are exactly 0?",
        ("none", "rpn_box, head_box", "rpn_objectness, head_class", "all four"),
    ),
)
