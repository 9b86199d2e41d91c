"""Numbers and statements in the prose of notebook 12 that no output shows, computed and run again."""

import subprocess
import sys

import pytest
import torch
from told import notebook, says

import vgpu
from course.kit.files import NOTEBOOKS
from frcnn_lite import data, engine, parallel

CACHED = """
from course.kit import learn
from frcnn_lite.detection import anchors, rpn

made, kept = anchors.grid_anchors, []

def cached(cell, *grid):
    kept.append(made(cell, *grid)) if not kept else None
    return kept[0].to(cell.device)
"""
REVEALED = "learn.reveal = lambda key, outcome: print(key, '->', outcome) if key == '12.two' else None\n"


@pytest.mark.parametrize(
    ("before", "outcome"),
    [
        ("from course.kit import learn\n", "on both, made twice"),
        (CACHED + "rpn.grid_anchors = cached\n", "on both, copied from cuda:0"),
    ],
    ids=["as the detector is", "anchors kept in a cache"],
)
def test_tells_anchors_that_are_made_from_anchors_that_are_copied(before, outcome):
    skipped = {"predict", "exercise", "solution", "widget"}
    sources = [c.source for _, c in notebook("12").code if not skipped & set(c.metadata.get("tags", ()))]
    (last,) = (k for k, source in enumerate(sources) if '"12.two"' in source)
    program = before + REVEALED + "\n".join(sources[: last + 1])
    ran = subprocess.run([sys.executable, "-c", program], cwd=NOTEBOOKS, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert f"12.two -> {outcome}" in ran.stdout


def test_says_what_a_step_asks_of_the_gpu(monkeypatch):
    """The answers of NMS, and no copy to the CPU beside them."""
    asked, equal = [], torch.equal
    monkeypatch.setattr(torch, "equal", lambda *two: asked.append(two) or equal(*two))
    with vgpu.virtual_gpus(1):
        batch = data.collate([data.DigitScenes("train", 2)[k] for k in range(2)])
        detector = engine.load_weights(NOTEBOOKS / "checkpoints" / "digits.pt").to("cuda:0")
        given = [x.to("cuda:0") for x in (batch.images, batch.boxes, batch.labels, torch.arange(2))]
        with vgpu.trace() as trace:
            parallel.reduce_loss(*detector(*given))
        assert asked and not trace.copies()
    assert says("12", "Here only NMS asks for a number: after each of its rounds, whether anything has changed")
