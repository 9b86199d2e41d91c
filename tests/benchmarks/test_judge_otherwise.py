"""A detector that looks at the mirror image too finds in a mirrored picture what it finds in the picture."""

import dataclasses

import pytest
import torch
from judge_otherwise import MirroredToo, main

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, train

SIDE = 64


@pytest.fixture(scope="module")
def detector():
    """Random weights; those of the last layers large enough for scores that differ."""
    torch.manual_seed(0)
    detector = FasterRCNN(FasterRCNNConfig(proposals=12, pre_nms_proposals=24, score_threshold=0.0)).eval()
    torch.nn.init.normal_(detector.box_head.classify.weight, std=0.3)
    torch.nn.init.normal_(detector.box_head.regress.weight, std=0.1)
    return detector


@torch.no_grad()
def test_a_mirrored_picture_has_the_same_objects_mirrored(detector):
    images = torch.rand(2, 3, SIDE, SIDE)
    both = MirroredToo(detector)
    found, mirrored = both(images), both(images.flip(3))
    assert found.valid.all() and torch.equal(found.labels, mirrored.labels)
    torch.testing.assert_close(found.scores, mirrored.scores)
    left, top, right, bottom = mirrored.boxes.unbind(dim=2)
    torch.testing.assert_close(
        found.boxes, torch.stack([SIDE - right, top, SIDE - left, bottom], dim=2), rtol=0, atol=1e-3
    )
    alone = detector(images)
    assert not torch.equal(alone.labels, found.labels), "the mirror image had its say"


def test_a_run_is_judged_in_every_way(tmp_path, monkeypatch, capsys):
    config = TrainConfig(steps=1, batch_size=2, image_size=SIDE, train_images=2, test_images=2)
    config = dataclasses.replace(config, model=FasterRCNNConfig(widths=(8, 8, 8), blocks=(0, 0, 0), head_width=8))
    train(config, tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["judge_otherwise.py", str(tmp_path / "run")])
    main()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:5]] == ["as it is", "twice the proposals", "mirrored too"]
    assert all(len(row.split("|")) == 7 for row in rows), "a table"
