import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from frcnn_lite.data import DigitScenes, read_image
from frcnn_lite.detection import Detections, FasterRCNNConfig
from frcnn_lite.engine import Run, TrainConfig, build_model, predict, predict_file
from frcnn_lite.engine.predict import draw_boxes


@pytest.fixture(scope="module")
def model():
    return build_model(FasterRCNNConfig(score_threshold=0.0), seed=0).eval()


def picture(width, height):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("size", [(128, 128), (61, 200), (1, 1), (300, 20)])
def test_boxes_lie_inside_a_picture_of_any_size(model, size):
    found = predict(model, picture(*size), min_score=0.0)
    assert (found.boxes >= 0).all() and (found.boxes <= torch.tensor([*size, *size])).all()
    assert len(found.boxes) == len(found.scores) == len(found.labels)
    assert (found.scores.diff() <= 0).all()


class OneBox(nn.Module):
    """Answers with the box (10, 20, 30, 40) and remembers what it was shown."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.seen = None

    def forward(self, images):
        self.seen = tuple(images.shape)
        boxes = torch.tensor([[[10.0, 20.0, 30.0, 40.0]]])
        return Detections(boxes, torch.ones(1, 1), torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1) > 0)


def test_a_large_picture_is_shrunk_and_gets_boxes_in_its_own_pixels():
    detector = OneBox()
    found = predict(detector, picture(4096, 256))
    assert detector.seen == (1, 3, 64, 1024) and found.boxes.tolist() == [[40.0, 80.0, 120.0, 160.0]]


def test_the_least_score_is_kept_to(model):
    every = predict(model, picture(128, 128), min_score=0.0).scores
    limit = float(every[len(every) // 2])
    assert len(predict(model, picture(128, 128), min_score=limit).scores) == int((every >= limit).sum())
    with pytest.raises(ValueError, match="`min_score` must be between 0 and 1, got 2"):
        predict(model, picture(8, 8), min_score=2)


def test_the_batch_a_picture_is_in_does_not_matter_to_it(model):
    scene = DigitScenes("test", 3)[2]
    alone = predict(model, Image.fromarray(scene.image.permute(1, 2, 0).numpy()), min_score=0.0)
    with torch.no_grad():
        images = torch.stack([DigitScenes("test", 3)[i].image for i in range(3)]) / 255
        together = model(images)
    valid = together.valid[2]
    torch.testing.assert_close(alone.boxes, together.boxes[2][valid], rtol=1e-4, atol=1e-2)


def test_pictures_are_never_overwritten(model, tmp_path):
    source = tmp_path / "a.png"
    picture(64, 64).save(source)
    before = source.read_bytes()
    run = Run(TrainConfig(), model, 0, [])
    first, second = (predict_file(run, source, tmp_path, min_score=0.0)[1] for _ in range(2))
    assert [first.name, second.name] == ["a-2.png", "a-3.png"] and source.read_bytes() == before
    assert Image.open(first).size == (64, 64)


def test_pictures_are_shown_to_the_detector_of_a_run_as_in_training(tmp_path):
    picture(640, 480).save(tmp_path / "a.png")
    detector = OneBox()
    for data, seen in (("digits", (1, 3, 480, 640)), ("voc:cells", (1, 3, 96, 64))):
        found, drawn = predict_file(
            Run(TrainConfig(data=data, image_size=(96, 64)), detector, 0, []), tmp_path / "a.png"
        )
        assert detector.seen == seen and drawn is None and len(found.boxes) == 1


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_file_that_is_no_picture_is_named(tmp_path, content):
    file = tmp_path / "broken.png"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.png cannot be read as an image"):
        read_image(file)


def test_a_cut_and_a_missing_file_are_named(tmp_path):
    file = tmp_path / "cut.jpg"
    picture(64, 64).save(file)
    file.write_bytes(file.read_bytes()[:800])
    with pytest.raises(ValueError, match=r"cut\.jpg cannot be read as an image"):
        read_image(file)
    with pytest.raises(FileNotFoundError, match=r"no image at .*gone\.png"):
        read_image(tmp_path / "gone.png")


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_every_kind_of_pixel_becomes_rgb(tmp_path, mode):
    picture(9, 7).convert(mode).save(tmp_path / "image.png")
    image = read_image(tmp_path / "image.png")
    assert image.mode == "RGB" and image.size == (9, 7)


def test_boxes_are_outlined_on_a_copy():
    image = Image.new("RGB", (40, 40))
    drawn = np.array(draw_boxes(image, torch.tensor([[10.0, 20.0, 30.0, 35.0]]), ["7"]))
    assert not np.array(image).any()
    assert drawn[20, 10].any() and drawn[34, 29].any() and not drawn[25:33, 12:28].any() and not drawn[36:].any()
