"""torchvision's backbones from the command line: trained, resumed, judged and used; their weights read from a file."""

import json

import pytest
import torch
from annotated_folders import write_voc
from PIL import Image

from frcnn_lite.cli import main
from frcnn_lite.data import DigitScenes
from frcnn_lite.engine import Trainer, load_run, resolve

torchvision = pytest.importorskip("torchvision")
TINY = ("--batch-size", "2", "--image-size", "64", "--train-images", "8", "--test-images", "2", "--warmup-steps", "0")


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def weights(tmp_path):
    """A file such as torchvision hands out, with numbers that nobody trained."""

    def write(name):
        torch.manual_seed(3)
        model = torchvision.models.get_model(name, weights=None)
        for buffer in model.buffers():
            buffer.add_(0.5 if buffer.is_floating_point() else 1)
        torch.save(model.state_dict(), tmp_path / f"{name}.pth")
        return tmp_path / f"{name}.pth"

    return write


@pytest.mark.parametrize(
    ("backbone", "fpn"),
    [
        ("resnet18", False),
        ("resnet18", True),
        pytest.param("resnet50", True, marks=pytest.mark.long),
        ("mobilenet_v3_large", False),
    ],
)
def test_a_run_is_trained_resumed_judged_and_used(backbone, fpn, tmp_path, capsys):
    out, pyramid = tmp_path / "run", ["--fpn"] if fpn else []
    assert run("train", *TINY, "--steps", 1, "--backbone", backbone, *pyramid, "--out", out) == 0
    assert f"backbone {backbone}{', feature pyramid' if fpn else ''}, from scratch" in capsys.readouterr().err
    assert run("train", "--resume", "--out", out) == 0
    capsys.readouterr()
    assert run("evaluate", "--run", out) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 2
    Image.fromarray(DigitScenes("test", 1, size=64)[0].image.permute(1, 2, 0).numpy()).save(tmp_path / "p.png")
    assert run("predict", "--run", out, tmp_path / "p.png", "--min-score", 0, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["images"][0]["image"].endswith("p.png")
    model = load_run(out).config.model
    assert (model.backbone, model.fpn, model.norm) == (backbone, fpn, "group")


@pytest.mark.parametrize(
    ("backbone", "fpn", "ours", "theirs"),
    [
        ("resnet18", False, "maps.layer1.0.bn1.running_mean", "layer1.0.bn1.running_mean"),
        ("resnet18", True, "maps.body.layer4.1.conv2.weight", "layer4.1.conv2.weight"),
        ("mobilenet_v3_large", False, "maps.0.3.block.0.0.weight", "features.3.block.0.0.weight"),
        ("mobilenet_v3_large", True, "maps.body.16.0.weight", "features.16.0.weight"),
    ],
)
def test_a_backbone_starts_from_the_weights_of_a_file(backbone, fpn, ours, theirs, weights):
    file = weights(backbone)
    config = resolve(fpn=fpn, weights=str(file), steps=20)
    assert config.model.backbone == backbone  # follows from the file
    assert config.model.norm == "frozen" and config.model.pixel_mean == (0.485, 0.456, 0.406)
    trainer = Trainer(config)
    before = trainer.model.rpn.conv.weight.clone()
    trainer.start_from(config.weights)
    stored = torch.load(file, weights_only=True)[theirs]
    assert trainer.detector is not trainer.model and torch.equal(trainer.model.rpn.conv.weight, before)
    for model in (trainer.model, trainer.detector):
        assert torch.equal(model.backbone.state_dict()[ours], stored)


def test_a_run_that_began_from_a_file_goes_on_without_it(weights, tmp_path, capsys):
    file, out = weights("resnet18"), tmp_path / "run"
    begin = ("--backbone", "resnet18", "--weights", file, "--steps", 0, "--out", out)
    assert run("train", *TINY, *begin) == 0
    assert f"backbone resnet18, its weights from {file}" in capsys.readouterr().err
    stored = torch.load(file, weights_only=True)["conv1.weight"]
    file.unlink()
    assert torch.equal(load_run(out).model.backbone.maps.conv1.weight, stored)
    assert run("train", "--resume", "--out", out) == 0


def test_wrong_files_and_names_are_one_line_and_leave_nothing_behind(weights, tmp_path, capsys):
    file, empty, code = weights("resnet18"), tmp_path / "empty.pth", tmp_path / "code.pth"
    torch.save([1, 2], empty)
    torch.save({"conv1.weight": print}, code)
    for given, words in (
        (("--backbone", "resnet50", "--weights", file), f"{file} does not hold the weights of a resnet50: "),
        (("--backbone", "resnet18", "--weights", tmp_path / "gone.pth"), "`weights` must be a file, got "),
        (("--backbone", "resnet18", "--weights", empty), "empty.pth must hold a state dict, got list"),
        (("--backbone", "resnet18", "--weights", code), "code.pth cannot be read: it holds code ("),
        (("--backbone", "lite", "--weights", file), f"{file} does not hold the weights of a lite: "),
        (("--fpn",), "`fpn` must be false for the backbone"),
        (("--backbone", "vgg16"), "`backbone` must be"),
    ):
        assert run("train", *TINY, "--steps", 1, *given, "--out", tmp_path / "run") == 2
        (line,) = capsys.readouterr().err.splitlines()  # nothing is said of a plan that cannot be
        assert line.startswith("error: ") and words in line and not (tmp_path / "run").exists()


def test_a_pyramid_gets_an_anchor_size_a_level_from_the_boxes(tmp_path):
    assert len(resolve(backbone="resnet18", fpn=True).model.anchor_sizes) == 5
    assert len(resolve(backbone="mobilenet_v3_large", fpn=True).model.anchor_sizes) == 3
    pictures = {name: [("dog", (9, 9, 20 + 8 * k, 40))] for k, name in enumerate("abc")}
    folder = write_voc(tmp_path / "voc", pictures, {"train": ["a", "b"], "test": ["c"]})
    model = resolve(data=f"voc:{folder}", backbone="resnet18", fpn=True).model
    assert len(model.anchor_sizes) == 5 and model.num_classes == 1
