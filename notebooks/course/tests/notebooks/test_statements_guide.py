"""What notebooks 18 and 19 say of the guide of 2017: every comment translated, every quoted line as printed."""

import re

import pytest
import torch
from test_statements_dataparallel import NOTEBOOKS, notebook, says
from torch import nn

import vgpu
from course.kit import guide_2017 as guide
from course.lessons.nb18.puzzles.in_numpy import BestBoxes, in_numpy

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def comments():
    """The author's comments in the three listings."""
    lines = [line for name in guide.LISTINGS for line in guide.listing(name).splitlines()]
    return {line.split("#")[-1].strip() for line in lines if "#" in line and CHINESE.search(line)}


def code_of(line):
    return "".join(line.split("#")[0].split())


def test_every_comment_of_the_author_is_translated():
    assert comments() == set(guide.COMMENTS)


@pytest.mark.parametrize("words", guide.COMMENTS.values())
def test_18_gives_every_translation(words):
    prose = " ".join(cell.source for cell in notebook("18").node.cells if cell.cell_type == "markdown")
    said = re.sub(r"[*\"`]", "", " ".join(prose.split())).lower()
    assert words.lower() in said


def test_18_quotes_the_lines_of_the_guide():
    """In its python blocks: what is said to be the guide's stands in the listings, and what was before it, too."""
    blocks = [
        block
        for cell in notebook("18").node.cells
        if cell.cell_type == "markdown"
        for block in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL)
    ]
    printed = {code_of(line) for name in guide.LISTINGS for line in guide.listing(name).splitlines()}
    undone = {code_of(line) for name in guide.LISTINGS for line in _undone(guide.listing(name)).splitlines()}
    old = {code_of(line.replace("#", "", 1)) for name in guide.LISTINGS for line in guide.listing(name).splitlines()}
    ours = {"...", "", code_of("v = torch.from_numpy(x).to(like.device)")}
    quoted = {code_of(line) for block in blocks for line in block.splitlines()} - ours
    quoted |= {code_of("return cls_prob, bbox_pred, rois")}  # a comment of the listing
    assert len(blocks) == 7 and len(quoted) > 15
    assert quoted <= printed | undone | old, quoted - printed - undone - old


def _undone(text):
    for old, new in (guide.SLIP, *guide.UNDONE):
        text = text.replace(old, new)
    return text


def test_18_the_two_repairs_that_leave_the_message_as_it_was():
    (cell,) = (c for c in notebook("18").node.cells if "order = [" in c.source)
    endings = [line[23:] for line in cell.outputs[0].text.splitlines()]
    assert len(endings) == 8 and endings[1] == endings[2] == endings[3]
    assert len(set(endings)) == 6 and endings[-1].startswith("right")
    assert says("18", "Seven repairs were needed, and after two of them the message stayed exactly the same")


def test_18_the_patch_of_parallel_apply_alone_would_have_cured_all_eight():
    """The guide's worker enters the device of the module, whatever its inputs are."""
    replicas = nn.parallel.replicate(guide.build(guide.before()), [0, 1])
    for k, replica in enumerate(replicas):
        with torch.cuda.device(k):
            assert replica(*guide.blob(k)).get_device() == k
    assert says("18", "that change alone would have cured all eight")


def test_18_the_layer_of_the_exercise_is_right_in_any_thread():
    scores = torch.rand(5, device="cuda:1")
    boxes, labels, _ = in_numpy(BestBoxes(2), scores, torch.rand(5, 4), ["disc"])
    assert boxes.device == labels.device == scores.device and labels.dtype == torch.int64


def test_19_the_sum_of_ten_suspects():
    """One section for each group, and the board has them all."""
    headings = [c.source for c in notebook("19").node.cells if c.cell_type == "markdown"]
    text = "\n".join(headings)
    for words in ("Suspects 1 to 4", "Suspects 5 to 7", "Suspects 8 to 10"):
        assert f"## {words}" in text
    (board,) = (c for c in notebook("19").node.cells if c.cell_type == "code" and "case_board" in c.source)
    (told,) = (o.data["text/plain"] for o in board.outputs if "image/svg+xml" in o.data)
    assert told.count("does it fit?") == 10 and told.count("does it fit? fits") == 3
    assert says("19", "Three are left, and all three are RoI pooling.")


def test_19_the_report_is_the_end_of_the_guide():
    assert says("19", "some of weight/gradient/input tensors are located on different GPUs")


def test_19_the_line_of_the_copies_is_the_one_that_runs():
    """The notebook quotes the copies; its own backward, and the completed one, make the gradient in the same way."""
    source = (NOTEBOOKS / "posts" / "000_completed.py").read_text(encoding="utf-8")
    assert "grad_input = torch.zeros(*state.feature_size).cuda()" in source
    assert says("19", "grad_input = torch.zeros(batch_size, num_channels, data_height, data_width).cuda()")
    assert any("grad_input = torch.zeros(*keeper.feature_size).cuda()" in c.source for c in notebook("19").node.cells)
