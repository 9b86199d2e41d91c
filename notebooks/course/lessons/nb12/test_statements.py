"""Numbers and statements in the prose of notebook 12 that no output shows, computed and run again."""

import torch
from told import notebook, says
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

import vgpu
from course.kit.files import CHECKPOINTS
from frcnn_lite import data, engine, parallel


def test_says_what_a_step_asks_of_the_gpu(monkeypatch):
    """One question of NMS, and no copy to the CPU beside it."""
    asked, equal = [], torch.equal
    monkeypatch.setattr(torch, "equal", lambda *two: asked.append(two) or equal(*two))
    with vgpu.virtual_gpus(1):
        batch = data.collate([data.DigitScenes("train", 2)[k] for k in range(2)])
        detector = engine.load_weights(CHECKPOINTS / "digits.pt").to("cuda:0")
        given = [x.to("cuda:0") for x in (batch.images, batch.boxes, batch.labels, torch.arange(2))]
        with vgpu.trace() as trace:
            parallel.reduce_loss(*detector(*given))
        assert len(asked) == 1 and not trace.copies()
    assert says("12", "Here only [NMS](14_proposals_and_nms.ipynb) asks, whether it is done, and as a rule once")


def test_says_what_torchvision_does_with_labels_from_0():
    """Labels of 0 raise nothing, and no region is trained as an object: the loss of the second boxes is 0."""
    torch.manual_seed(0)
    scene = data.DigitScenes("train", 1)[0]
    theirs = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=11)
    boxes_learned = {}
    for label in (0, 1):
        target = {"boxes": scene.boxes, "labels": torch.full((len(scene.boxes),), label)}
        boxes_learned[label] = theirs([scene.image / 255], [target])["loss_box_reg"].item() > 0
    assert boxes_learned == {0: False, 1: True}
    assert says("12", "With our labels every zero would be trained as background, and nothing would raise")


def test_says_how_many_anchors_a_picture_of_130_pixels_has():
    model = engine.load_weights(CHECKPOINTS / "digits.pt")
    with torch.no_grad():
        rpn = model.rpn(model.backbone(torch.rand(1, 3, 130, 130)).rpn)
    assert rpn.logits.shape == (1, 867) and 3 * (130 // 8) ** 2 == 768
    assert says("12", "makes 768 anchors for 867 rows of answers")


def test_says_what_a_replica_has_of_an_attribute():
    """The model's own tensor, where a buffer is a copy on the replica's GPU."""
    with vgpu.virtual_gpus(2) as gpus:
        net = torch.nn.Linear(2, 2).cuda()
        net.plain = torch.ones(2).cuda()
        net.register_buffer("constant", torch.ones(2).cuda())
        replica = torch.nn.parallel.replicate(net, gpus)[1]
        assert replica.plain is net.plain
        assert {x.device for x in (replica.constant, replica.weight)} == {gpus[1]}
    assert says("12", "Any other attribute of a replica is the model's own object")


def test_says_how_many_digits_a_table_by_columns_finds():
    (shown,) = [
        "".join(o.get("text", "") for o in c.outputs) for _, c in notebook("12").code if "lines = {" in c.source
    ]
    assert " 4 of 11 digits: permute(0, 3, 2, 1)" in shown
    assert says("12", "The line that goes down the columns finds four digits")
