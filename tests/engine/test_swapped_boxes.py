"""What notebook 13 says of boxes with x and y swapped: the loss falls, and boxes go to the mirrored places."""

import torch

from frcnn_lite import data, ops
from frcnn_lite.detection.proposals import make_proposals
from frcnn_lite.engine import Pictures, TrainConfig, Trainer

CONFIG = TrainConfig(steps=100, batch_size=6, image_size=64, lr=3e-3, warmup_steps=20, test_images=40)


def swapped(boxes):
    return boxes[..., [1, 0, 3, 2]]


def test_swapped_boxes_teach_the_mirrored_places():
    trainer, pictures = Trainer(CONFIG), Pictures().train(CONFIG)
    draw = torch.Generator().manual_seed(0)
    objectness = []
    for _ in range(CONFIG.steps):
        scenes = [pictures[k] for k in torch.randint(0, len(pictures), (6,), generator=draw).tolist()]
        batch = data.collate(scenes)
        objectness.append(trainer.take_step(batch._replace(boxes=swapped(batch.boxes)))["rpn_objectness"])
    assert sum(objectness[-20:]) < 0.8 * sum(objectness[:20])

    detector, covered = trainer.detector.eval(), {"digits": 0, "mirror images": 0}
    unseen = [Pictures().held_out(CONFIG)[k] for k in range(CONFIG.test_images)]
    with torch.no_grad():
        for scene in unseen:
            found = detector.rpn(detector.backbone(data.collate([scene]).images).rpn)
            best = make_proposals(found, detector.rpn.delta_weights, (64, 64), detector.config).boxes[0, :10]
            for name, boxes in (("digits", scene.boxes), ("mirror images", swapped(scene.boxes))):
                covered[name] += int((ops.box_iou(boxes, best).amax(dim=1) > 0.5).sum())
    digits = sum(len(scene.boxes) for scene in unseen)
    assert covered["digits"] < 0.15 * digits and covered["mirror images"] > 2 * covered["digits"]
