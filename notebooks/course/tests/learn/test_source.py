"""What is folded under a cell holds the line that the cell is about."""

from course.kit import learn
from frcnn_lite import parallel


def test_source_of_a_function_alone():
    card = learn.source(parallel.reduce_loss)
    assert card.text == "Source of `frcnn_lite.parallel.reduce_loss.reduce_loss` (folded)"
    assert "tree_map(_ratio, sums, counts)" in card.html and "def _ratio" not in card.html


def test_source_with_the_helpers_that_do_the_work():
    card = learn.source(parallel.reduce_loss, helpers=True)
    assert card.text == "Source of `frcnn_lite.parallel.reduce_loss.reduce_loss` (folded)"
    assert "torch.clamp(count.sum(), min=1)" in card.html


def test_a_helper_that_calls_itself_is_shown_once():
    code = learn.source(parallel.replicate, helpers=True).html
    assert code.count("def _replica(") == 1 and "made.setdefault(weight, weight.to(device))" in code
    assert "def scatter" not in code and "def gather" not in code


def test_several_helpers_follow_the_function_that_names_them():
    code = learn.source(parallel.parallel_apply, helpers=True).html
    assert code.index("def parallel_apply(") < min(code.index("def _home_of("), code.index("def _modes("))


def test_what_speaks_to_a_linter_is_not_shown():
    def kept(x):
        return x.cuda()  # noqa: FL001 the current GPU

    def twice(x):
        return x * 2  # a remark for readers

    assert "noqa" not in learn.source(kept).html and "x.cuda()" in learn.source(kept).html
    assert "a remark for readers" in learn.source(twice).html
