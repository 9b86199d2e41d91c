import ast
import importlib
import warnings
from pathlib import Path

import nbformat
import pytest
import torch
from annotated_folders import write_coco, write_voc
from PIL import Image

from frcnn_lite import engine
from frcnn_lite.cli import main
from frcnn_lite.data import voc
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import RunDirectory, TrainConfig, fill_minutes, resolve

module = importlib.import_module("frcnn_lite.engine.resolve")  # the package has a function of this name
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "20_train_faster_rcnn_lite.ipynb"

CONFIG = TrainConfig(batch_size=2, image_size=64, train_images=10)


def test_steps_fill_the_time_that_is_left(monkeypatch):
    """With a clock on which each step takes half a second: 15 trial steps cost 7.5 s of 60, the rest holds 105."""
    now = iter(range(1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now) * 0.5)
    # The clock is read at the begin, twice a step, and at the end; between two steps half a second passes too.
    assert fill_minutes(CONFIG, 1.0).steps == (60 - 0.5 * (2 * 15 + 1)) // 0.5


def test_at_least_one_step_and_no_trace_on_the_global_generator():
    state = torch.get_rng_state()
    assert fill_minutes(CONFIG, 1e-9).steps == 1
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_minutes_must_be_positive(minutes):
    with pytest.raises(ValueError, match="`minutes` must be a positive number"):
        fill_minutes(CONFIG, minutes)


def test_epochs_are_rounded_up_to_whole_steps():
    steps = [resolve(epochs=epochs, batch_size=2, train_images=10).steps for epochs in (1, 0.5, 3)]
    assert steps == [5, 3, 15]
    with pytest.raises(ValueError, match="`epochs` must be a positive number, got -1"):
        resolve(epochs=-1)


def test_command_line_dataclass_and_notebook_train_the_same_detector(tmp_path):
    """What is not chosen is the same everywhere: the detector, the views of pictures, the average of the weights."""
    assert main(["train", "--steps", "1", "--batch-size", "2", "--test-images", "0", "--out", str(tmp_path / "r")]) == 0
    command_line = RunDirectory.open(tmp_path / "r").read_config()
    assert (
        command_line
        == TrainConfig(steps=1, batch_size=2, test_images=0)
        == resolve(steps=1, batch_size=2, test_images=0)
    )
    assert command_line.model == FasterRCNNConfig() == TrainConfig().model
    cells = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    (cell,) = (cell for cell in cells if "settings = engine.TrainConfig" in cell and "model=" not in cell)
    chosen = ast.unparse(next(node for node in ast.parse(cell).body if isinstance(node, ast.Assign)).value)
    settings = eval(chosen, {"engine": engine})
    assert settings.model == FasterRCNNConfig() and settings.averaging == TrainConfig().averaging
    assert settings.augmentation == command_line.augmentation and settings.ema > 0


def test_digits_are_what_the_defaults_were_made_for():
    assert resolve() == TrainConfig() and resolve(lr=0.1, seed=2) == TrainConfig(lr=0.1, seed=2)
    assert resolve(roi_op="pool").model == FasterRCNNConfig(roi_op="pool")


def test_what_is_no_field_is_refused():
    with pytest.raises(TypeError, match="momentum"):
        resolve(momentum=0.9)


@pytest.fixture
def folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (11, 11, 30, 30), True)] for name in "abcdef"}
    pictures["d"] = [("cat", (1, 1, 20, 20)), ("dog", (60, 5, 60, 5))]
    return write_voc(tmp_path / "voc", pictures, {"train": list("abcd"), "val": list("ef")})


def test_what_follows_from_a_folder(folder):
    with pytest.warns(UserWarning, match=r"no_area: 1\n  Annotations/d.xml"):
        config = resolve(data=f"voc:{folder}")
    assert (config.data, config.test_data) == (f"voc:{folder}@train", f"voc:{folder}@val")
    assert config.class_names == ("cat", "dog") and config.model.num_classes == 2
    assert (config.train_images, config.test_images, config.flip) == (4, 2, 0.5)
    assert config.image_size == (64, 96)
    assert config.model.anchor_sizes == pytest.approx((26.7, 42.7), abs=0.2) and config.model.anchor_ratios == (1.0,)
    assert TrainConfig.from_json(config.to_json()) == config


@pytest.mark.filterwarnings("ignore:.*has defects")
def test_the_mirror_image_is_looked_at_where_training_mirrors(folder):
    data = f"voc:{folder}"
    assert resolve(data=data).model.mirrored and not resolve(data=data, flip=0.0).model.mirrored
    assert not resolve(data=data, mirrored=False).model.mirrored
    assert not resolve().model.mirrored and resolve(flip=0.5).model.mirrored and resolve(mirrored=True).model.mirrored
    assert resolve(model=FasterRCNNConfig(mirrored=True)).model.mirrored


def test_what_is_chosen_stays(folder):
    data = f"voc:{folder}"
    with pytest.raises(ValueError, match="no_area: 1"):
        resolve(data=data, image_size=(48, 64), handle=("no_area=raise",))
    config = resolve(data=data, image_size=(48, 64), flip=0.25, train_images=3, anchor_sizes=(9.0,), roi_op="pool")
    assert (config.image_size, config.flip, config.zoom, config.train_images) == ((48, 64), 0.25, 0.25, 3)
    assert (config.model.anchor_sizes, config.model.anchor_ratios, config.model.roi_op) == ((9.0,), (1.0,), "pool")


def test_a_file_of_coco(tmp_path):
    box = {"bbox": [8, 8, 32, 32], "category_id": 7}
    forty = [{**box, "bbox": [k / 2, 8, 32, 32]} for k in range(40)]
    one = write_coco(tmp_path / "train.json", {"a.jpg": forty, "b.jpg": [box, {**box, "iscrowd": 1}]})
    two = write_coco(tmp_path / "val.json", {"c.jpg": [box]})
    config = resolve(data=f"coco:{one}", test_data=f"coco:{two}")
    assert config.class_names == ("dog", "cat") and (config.train_images, config.test_images) == (2, 1)
    assert config.model.detections >= 80 and config.model.proposals >= 80  # room for all forty, and mistakes


def test_pictures_without_boxes_cannot_be_trained_on(tmp_path):
    folder = write_voc(tmp_path, {name: [] for name in "ab"}, {"train": ["a"], "test": ["b"]})
    with warnings.catch_warnings(), pytest.raises(ValueError, match="there is no box to train on in 1 pictures"):
        warnings.simplefilter("ignore")
        resolve(data=f"voc:{folder}")


def test_a_run_of_minutes_reads_each_file_once(tmp_path, monkeypatch):
    """Sixteen pictures: an annotation is parsed once; an image is looked through once, and decoded once to be used."""
    names = [f"{k:02}" for k in range(16)]
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (41, 11, 60, 30))] for name in names}
    folder = write_voc(tmp_path / "pets", pictures, {"train": names[:13], "test": names[13:]})
    parsed, opened = [], []
    parse, open_image = voc.parse_xml, Image.open
    monkeypatch.setattr(voc, "parse_xml", lambda text: parsed.append(text) or parse(text))
    monkeypatch.setattr(Image, "open", lambda file, *rest: opened.append(Path(file).stem) or open_image(file, *rest))
    ask = ["train", "--data", f"voc:{folder}", "--image-size", "64", "--batch-size", "13", "--minutes", "0.001"]
    assert main([*ask, "--out", str(tmp_path / "run")]) == 0
    assert len(parsed) == 16 and {name: opened.count(name) for name in names} == dict.fromkeys(names, 2)
