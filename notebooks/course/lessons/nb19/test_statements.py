"""Numbers and statements in the prose of notebook 19 that no output shows, computed and run again."""

from told import cell, notebook, says

from course.kit import guide_2017 as guide
from course.kit.files import POSTS
from multigpu.lint import lint_text


def test_the_sum_of_ten_suspects():
    """One section for each group, and the board has them all."""
    text = "\n".join(source for _, source in notebook("19").prose)
    for words in ("Suspects 1 to 7", "Suspects 8 to 10"):
        assert f"## {words}" in text
    (board,) = (c for _, c in notebook("19").code if "suspects_board(then" in c.source)
    (told,) = (o.data["text/plain"] for o in board.outputs if "image/svg+xml" in o.data)
    assert told.count("does it fit?") == 10 and told.count("does it fit? fits") == 3
    assert says("19", "Three are left, and all three are RoI pooling.")


def test_the_report_is_the_end_of_the_guide():
    assert says("19", "some of weight/gradient/input tensors are located on different GPUs")


def test_the_line_of_the_copies_is_the_one_that_runs():
    """The notebook quotes the copies; its own backward, and the completed one, make the gradient in the same way."""
    source = (POSTS / "000_completed.py").read_text(encoding="utf-8")
    assert "grad_input = torch.zeros(*state.feature_size).cuda()" in source
    assert says("19", "grad_input = torch.zeros(batch_size, num_channels, data_height, data_width).cuda()")
    assert cell("19", "grad_input = torch.zeros(*keeper.feature_size).cuda()")


def test_what_the_linter_finds_before_the_repair_and_after_it():
    """Bare .cuda() calls in the three listings and in the backward of the copies."""

    def bare(*changes):
        found = []
        for name in (*guide.LISTINGS, "completed"):
            text = (POSTS / f"000_{name}.py").read_text(encoding="utf-8").replace(*guide.SLIP)
            for old, new in changes:
                text = text.replace(old, new)
            found += [text.splitlines()[bug.line - 1].strip() for bug in lint_text(text) if bug.rule == "FL001"]
        return [line for line in found if not line.startswith("return assemble(")]  # the first GPU, on purpose

    in_backward = "grad_input = torch.zeros(*state.feature_size).cuda()"
    assert len(bare(*guide.UNDONE)) == 7 and bare() == [in_backward]
    assert says("19", "had found every bare `.cuda()` of the guide's own listings")
    assert says("19", "finds one more in the copies, and it is the only one in a backward")
