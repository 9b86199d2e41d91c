"""A run that begins from weights: of a whole detector of torchvision's, or of one that this package exported."""

from dataclasses import replace

import pytest
import torch
from annotated_folders import write_voc

from frcnn_lite import engine
from frcnn_lite.cli import main
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine.start import RATES
from frcnn_lite.engine.trainer import build_optimizer

TINY = ("--batch-size", "2", "--warmup-steps", "0", "--steps", "1")


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 20 + 8 * k, 40))] for k, name in enumerate("abc")}
    return write_voc(tmp_path / "voc", pictures, {"train": ["a", "b"], "test": ["c"]})


@pytest.fixture
def detector(tmp_path):
    """The file of a small Faster R-CNN of torchvision's for 20 classes, with numbers that nobody trained."""
    models = pytest.importorskip("torchvision.models.detection")
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    torch.manual_seed(1)
    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
    torch.save(models.FasterRCNN(backbone, 21).state_dict(), tmp_path / "theirs.pth")
    return tmp_path / "theirs.pth"


def test_a_detector_of_torchvision_gives_all_but_its_last_layers(detector, folder):
    config = engine.resolve(data=f"voc:{folder}", weights=str(detector), steps=20)
    plan = config.model
    assert (plan.backbone, plan.fpn, plan.norm, plan.num_classes) == ("resnet18", True, "frozen", 1)
    assert max(config.image_size) == 224 > max(engine.resolve(data=f"voc:{folder}").image_size)
    assert plan.anchor_sizes == (32, 64, 128, 256, 512) and (plan.head_width, plan.roi_output_size) == (1024, 7)
    trainer, state = engine.Trainer(config), torch.load(detector, weights_only=True)
    classify = trainer.model.box_head.classify.weight.clone()
    said = trainer.start_from(detector)
    assert said.endswith("the backbone, the pyramid, the RPN, the hidden layers of the head")
    for model in (trainer.model, trainer.detector):
        own = model.state_dict()
        last = "fpn.layer_blocks.2.0.weight"
        assert torch.equal(own[f"backbone.maps.{last}"], state[f"backbone.{last}"])
        assert torch.equal(own["rpn.predict.bias"][::5], state["rpn.head.cls_logits.bias"])
        assert torch.equal(own["box_head.hidden.1.weight"], state["roi_heads.box_head.fc7.weight"])
        assert torch.equal(own["box_head.classify.weight"], classify)


def test_what_does_not_fit_begins_anew_and_what_is_chosen_stays(detector, folder):
    """With one anchor a cell the RPN is a different layer, and what comes after it has learned other regions."""
    config = engine.resolve(data=f"voc:{folder}", weights=str(detector), anchor_ratios=(1.0,), lr=0.01)
    assert config.model.anchor_ratios == (1.0,) and (config.lr, config.backbone_lr) == (0.01, RATES["backbone_lr"])
    assert engine.Trainer(config).start_from(detector).endswith("the backbone, the pyramid")
    alone = engine.resolve(data=f"voc:{folder}", weights=str(detector), fpn=False)
    assert engine.Trainer(alone).start_from(detector).endswith(": the backbone")


def test_other_detectors_give_their_backbone(detector, folder):
    state = torch.load(detector, weights_only=True)
    del state["roi_heads.box_head.fc6.weight"]  # as of a RetinaNet, say
    torch.save(state, detector)
    config = engine.resolve(data=f"voc:{folder}", weights=str(detector))
    assert config.model.head_width == FasterRCNNConfig().head_width and len(config.model.anchor_sizes) == 5
    assert engine.Trainer(config).start_from(detector).endswith(": the backbone")


def test_a_file_of_export_is_used_and_trained_on_without_its_run(folder, tmp_path, capsys):
    first, file = tmp_path / "first", tmp_path / "dog.pt"
    assert run("train", "--data", f"voc:{folder}", *TINY, "--out", first) == 0
    assert run("export", "--run", first, "--full", "--out", file) == 0
    stored, alone = engine.load_run(first), engine.load_run(file)
    assert (alone.config, alone.step, alone.history) == (stored.config, 1, [])
    picture = folder / "JPEGImages" / "c.jpg"
    for one in (stored, alone):  # after one step no score is large
        one.model.config = replace(one.model.config, score_threshold=0.0)
    assert alone(picture, min_score=0) == stored(picture, min_score=0) != []
    assert alone(picture, min_score=0)[0]["label"] == "dog"
    capsys.readouterr()
    assert run("evaluate", "--run", file) == 0 and run("predict", "--run", file, picture, "--json", "-") == 0

    again = engine.resolve(data=f"voc:{folder}", weights=str(file))
    assert (again.model, again.image_size) == (stored.config.model, stored.config.image_size)
    assert engine.Trainer(again).start_from(file).endswith("dog.pt: all")
    cats = engine.resolve(data="digits", weights=str(file), image_size=64, batch_size=2)
    trainer = engine.Trainer(cats)
    assert trainer.start_from(file).endswith("all but the layers that know the classes")
    assert torch.equal(trainer.model.rpn.conv.weight, stored.model.rpn.conv.weight)
    assert cats.model.num_classes == 10 and cats.model.anchor_sizes == stored.config.model.anchor_sizes


def test_files_that_cannot_be_begun_from_say_why(folder, tmp_path):
    first = tmp_path / "first"
    assert run("train", "--data", f"voc:{folder}", *TINY, "--test-images", 0, "--out", first) == 0
    with pytest.raises(engine.CheckpointError, match="is the checkpoint of a run; export the run"):
        engine.resolve(weights=str(first / "checkpoint.pt"))
    engine.save_weights(engine.load_run(first).model, tmp_path / "bare.pt")
    with pytest.raises(engine.CheckpointError, match=r"bare\.pt is not of a run: it does not say which classes"):
        engine.load_run(tmp_path / "bare.pt")
    with pytest.raises(ValueError, match="`best` must be False for a file"):
        engine.load_run(tmp_path / "bare.pt", best=True)
    assert engine.resolve(data=f"voc:{folder}", weights=str(tmp_path / "bare.pt")).lr == RATES["lr"]


def test_a_trained_backbone_has_a_rate_of_its_own():
    model = engine.build_model(FasterRCNNConfig(), seed=0)
    optimizer, _ = build_optimizer(model, engine.TrainConfig(lr=0.4, backbone_lr=0.1, warmup_steps=0))
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.4, 0.4, 0.04, 0.04])
    slow = {id(p) for group in optimizer.param_groups[2:] for p in group["params"]}
    assert slow == {id(p) for p in model.backbone.parameters()}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))
