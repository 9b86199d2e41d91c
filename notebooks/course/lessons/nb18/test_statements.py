"""Numbers and statements in the prose of notebook 18 that no output shows, computed and run again."""

import re

import pytest
import torch
from told import notebook, says
from torch import nn

from course.kit import guide_2017 as guide
from course.kit.attempt import last_line
from course.lessons.nb18.callers import data_parallel, equal, no_devices, one_by_one, step
from course.lessons.nb18.modern import modern_parts
from course.lessons.nb18.puzzles.in_numpy import BestBoxes, in_numpy
from frcnn_lite import parallel

pytestmark = [
    pytest.mark.virtual_gpus(3),
    pytest.mark.filterwarnings("ignore:size_average and reduce|Implicit dimension choice|Was asked to gather"),
]
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def comments():
    """The author's comments in the three listings."""
    lines = [line for name in guide.LISTINGS for line in guide.listing(name).splitlines()]
    return {line.split("#")[-1].strip() for line in lines if "#" in line and CHINESE.search(line)}


def code_of(line):
    return "".join(line.split("#")[0].split())


def test_every_comment_of_the_author_is_translated():
    assert comments() == set(guide.COMMENTS)


def test_quotes_the_lines_of_the_guide():
    """In its python blocks: each line is in the listings, as the guide printed it or as it was before."""
    texts = [text for _, text in notebook("18").prose]
    blocks = [block for text in texts for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    printed = {code_of(line) for name in guide.LISTINGS for line in guide.listing(name).splitlines()}
    undone = {code_of(line) for name in guide.LISTINGS for line in _undone(guide.listing(name)).splitlines()}
    old = {code_of(line.replace("#", "", 1)) for name in guide.LISTINGS for line in guide.listing(name).splitlines()}
    ours = {"...", "", code_of("v = torch.from_numpy(x).to(like.device)")}
    quoted = {code_of(line) for block in blocks for line in block.splitlines()} - ours
    quoted |= {code_of("return cls_prob, bbox_pred, rois")}  # a comment of the listing
    assert len(blocks) == 6 and len(quoted) > 15
    assert quoted <= printed | undone | old, quoted - printed - undone - old


def test_the_words_of_the_author_are_translations():
    """What stands between quotation marks in a comment of a block."""
    texts = "\n".join(text for _, text in notebook("18").prose)
    said = set(re.findall(r'#.*"(.+)"$', texts, re.MULTILINE))
    assert len(said) >= 6 and said <= set(guide.COMMENTS.values())


def _undone(text):
    for old, new in (guide.SLIP, *guide.UNDONE):
        text = text.replace(old, new)
    return text


def test_the_two_repairs_that_leave_the_message_as_it_was():
    """The places repaired one after the other, in the order in which they run."""
    good = guide.repaired() | {"np_to_variable": parallel.from_numpy}
    order = [*guide.LAYERS[:2], "RPN.build_loss", guide.LAYERS[2], "roi_pool", "FasterRCNN.build_loss"]
    parts, endings = guide.before(), []
    for name in ["nothing", "np_to_variable", *order]:
        parts |= {name: good[name]} if name in good else {}
        try:
            no_devices(guide.build(parts), (0, 1), 2)
            endings.append("right")
        except (RuntimeError, ValueError) as error:
            endings.append(last_line(error).split("device, but ")[-1])
    assert len(endings) == 8 and endings[1] == endings[2] == endings[3]
    assert len(set(endings)) == 6 and endings[-1] == "right" and "right" not in endings[:-1]
    assert says("18", "needs seven repairs, and after two of them the message stays exactly the same")


def test_the_modern_detector_is_pinned():
    """Nine pictures on two GPUs and on three, most of which get different numbers of them, against one GPU."""
    modern = modern_parts()
    truth = step(modern, one_by_one, images=9)
    for count in (2, 3):
        assert equal(step(modern, data_parallel, range(count), images=9), truth)


def test_the_program_trains():
    """`posts/000_completed.py` by its own loop: a fifth of its steps."""
    completed = guide.completed()
    losses = completed["train"](completed["detector"](guide.SLIP, completed["BOTH_LOSSES"]), [0, 1], steps=12)
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4])


def test_the_patch_of_parallel_apply_alone_would_have_cured_all_eight():
    """The guide's worker enters the device of the module, whatever its inputs are."""
    replicas = nn.parallel.replicate(guide.build(guide.before()), [0, 1])
    for k, replica in enumerate(replicas):
        with torch.cuda.device(k):
            assert replica(*guide.blob(k)).get_device() == k
    assert says("18", "that change alone would have cured all eight")


def test_the_layer_of_the_exercise_is_right_in_any_thread():
    scores = torch.rand(5, device="cuda:1")
    boxes, labels, _ = in_numpy(BestBoxes(2), scores, torch.rand(5, 4), ["disc"])
    assert boxes.device == labels.device == scores.device and labels.dtype == torch.int64
