"""From a reader's own folder to a detector, on the command line."""

import json

import pytest
import torch
from annotated_folders import write_coco, write_image, write_voc, write_yolo
from PIL import Image

from frcnn_lite.cli import main
from frcnn_lite.recipes.determinism import same_bits

STEPS = ("--steps", "3", "--batch-size", "2", "--image-size", "64x96", "--flip", "0.25", "--light", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    names = "abcdefgh"
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (41, 11, 60, 30), name == "h")] for name in names}
    pictures["b"].append(("dog", (60, 5, 60, 5)))
    lists = {"train": list("abcd"), "val": list("ef"), "trainval": list("abcdef"), "test": list("gh")}
    return write_voc(tmp_path_factory.mktemp("voc") / "pets", pictures, lists)


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "pets"
    assert main(["train", "--data", f"voc:{folder}", "--out", str(directory), *STEPS]) == 0
    return directory


def test_what_the_data_decides_is_said_and_stored(folder, tmp_path, capsys):
    assert main(["train", "--data", f"voc:{folder}", "--out", str(tmp_path / "run"), *STEPS]) == 0
    said = capsys.readouterr().err
    assert f"warning: voc:{folder}@trainval has defects\nno_area: 1\n  Annotations/b.xml: dog 60 5 60 5\n" in said
    assert "UserWarning" not in said and ".py" not in said  # a reader of data has no use for the line of code
    assert f"6 pictures of voc:{folder}@trainval, judged on 2 of voc:{folder}@test" in said
    assert "2 classes: cat, dog\npictures brought to 96 x 64; anchors of " in said
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (stored["class_names"], stored["image_size"]) == (["cat", "dog"], [64, 96])
    assert (stored["flip"], stored["zoom"], stored["light"]) == (0.25, 0.25, 0)
    assert "shown with flip 0.25, zoom 0.25, light 0" in said
    assert "the learning rate rises to 0.003 over 1 steps and falls to zero with the last" in said
    alone = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["data"]
    written = (tmp_path / "run" / "config.json").read_text()
    assert alone == {"class_names": ["cat", "dog"], "image_size": [64, 96], "run": written}


def test_a_run_is_judged_on_its_test_split_or_on_other_data(folder, run, tmp_path, capsys):
    assert main(["evaluate", "--run", str(run)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["images"], result["objects"]) == (2, 3)  # of four objects one is difficult
    assert main(["evaluate", "--run", str(run), "--data", f"voc:{folder}@val"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 4
    box = {"bbox": [8, 8, 32, 32], "category_id": 7}
    other = write_coco(tmp_path / "other.json", {"x.jpg": [box, {**box, "iscrowd": 1}]}, names=("dog", "cow"))
    assert main(["evaluate", "--run", str(run), "--data", f"coco:{other}@all"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 1


def test_a_run_predicts_without_the_data_it_learned_from(run, tmp_path, capsys):
    config = json.loads((run / "config.json").read_text())
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("checkpoint.pt", "log.jsonl"):
        (moved / name).write_bytes((run / name).read_bytes())
    gone = {**config, "data": "voc:/gone@train", "test_data": "voc:/gone@test"}
    (moved / "config.json").write_text(json.dumps(gone))
    write_image(tmp_path / "large.jpg", 300, 500)
    found = ["--out", str(tmp_path / "found"), "--min-score", "0"]
    assert main(["predict", "--run", str(moved), str(tmp_path / "large.jpg"), *found]) == 0
    assert (tmp_path / "found" / "large.png").is_file()
    assert main(["evaluate", "--run", str(moved)]) == 2
    assert "'voc:/gone@test': no such file or directory" in capsys.readouterr().err


def test_a_run_goes_on_with_the_same_pictures(folder, tmp_path):
    whole, halted = tmp_path / "whole", tmp_path / "halted"
    from frcnn_lite import engine

    with pytest.warns(UserWarning):
        config = engine.resolve(data=f"voc:{folder}", steps=4, batch_size=2, test_images=0)
        engine.train(config, whole, progress=False)

    def stop(record):
        if record["step"] == 1:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning):
        assert engine.train(config, halted, on_step=stop, progress=False).interrupted
    assert main(["train", "--resume", "--out", str(halted)]) == 0
    a, b = (torch.load(run / "checkpoint.pt", weights_only=True)["trainer"] for run in (whole, halted))
    assert same_bits(a, b)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--handle", "no_area=raise"], "no_area: 1"),
        (["--handle", "box=drop"], "no defect is called 'box'"),
        (["--test-data", "voc:/gone"], "no such file or directory"),
    ],
)
def test_what_is_refused_is_refused_before_a_step(folder, tmp_path, capsys, options, words):
    assert main(["train", "--data", f"voc:{folder}", "--out", str(tmp_path / "run"), *STEPS, *options]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "run").exists()


def without_pictures(root, count):
    """Annotations whose pictures have other names, as VOC and as COCO."""
    folder = write_voc(root / "voc", {f"good{k}": [("dog", (9, 9, 40, 40))] for k in range(count)})
    file = write_coco(
        root / "coco" / "boxes.json",
        {f"good{k}.jpg": [{"bbox": [8, 8, 32, 32], "category_id": 7}] for k in range(count)},
    )
    for images in (folder / "JPEGImages", file.parent / "images"):
        for picture in images.iterdir():
            picture.rename(picture.with_name(picture.name.replace("good", "alone")))
    return [(f"voc:{folder}", "there is no image JPEGImages/good"), (f"coco:{file}", "there is no such image")]


def test_annotations_without_their_pictures(tmp_path, capsys):
    for data, reason in without_pictures(tmp_path, 20):
        assert main(["data", "check", data]) == 1
        page = capsys.readouterr().out
        assert "not one picture can be used" in page and "unreadable: 20\n" in page and reason in page
        assert "pictures without an annotation, which no training sees: 20\n  alone0.jpg\n" in page
        assert main(["train", "--data", data, "--out", str(tmp_path / "run"), *STEPS]) == 2
        said = capsys.readouterr().err
        assert "pictures can be used\nunreadable: " in said and reason in said and "train_images" not in said
        assert f"error: {data}@train: not one of its " in said and not (tmp_path / "run").exists()


def test_too_few_pictures_to_hold_some_out(tmp_path, capsys):
    for data, _ in without_pictures(tmp_path, 1):
        assert main(["train", "--data", data, "--out", str(tmp_path / "run"), *STEPS]) == 2
        assert "too few pictures (1) to hold some out by their names, the split 't" in capsys.readouterr().err


def test_a_folder_of_yolo_is_trained_on_and_judged_on(tmp_path, capsys):
    """A class of the list that no picture shows is known, too."""
    lines = ["0 0.375 0.5 0.5 0.625", "2 0.75 0.5 0.25 0.25"]
    pictures = {f"images/{'train' if name < 'g' else 'val'}/{name}.jpg": lines for name in "abcdefgh"}
    yaml = "names:\n  0: dog\n  1: cow\n  2: cat\n"
    folder = write_yolo(tmp_path / "pets", {**pictures, "images/train/far.jpg": ["0 0.5 0.5 9 9"]}, {"data.yaml": yaml})
    out = tmp_path / "run"
    assert main(["train", "--data", f"yolo:{folder}", "--out", str(out), *STEPS]) == 0
    said = capsys.readouterr().err
    assert "labels/train/far.txt:1: 9 is outside 0..1" in said and "3 classes: dog, cow, cat" in said
    assert f"6 pictures of yolo:{folder}@train, judged on 2 of yolo:{folder}@val" in said
    assert main(["evaluate", "--run", str(out), "--data", f"yolo:{folder}@train", "--report", str(out / "report")]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 12
    matrix = json.loads((out / "report" / "confusion_matrix.json").read_text())
    assert matrix["rows"] == ["dog", "cow", "cat", "no object"] and list(map(sum, matrix["counts"][:3])) == [6, 0, 6]


@pytest.mark.parametrize("kind", ["voc", "yolo"])
def test_a_file_in_place_of_a_folder_and_a_folder_in_place_of_a_file(tmp_path, capsys, kind):
    (tmp_path / "data.yaml").write_text("names: [dog]")
    assert main(["train", "--data", f"{kind}:{tmp_path / 'data.yaml'}", "--out", str(tmp_path / "run"), *STEPS]) == 2
    assert f"data.yaml': {kind} takes a folder" in capsys.readouterr().err
    assert main(["data", "check", f"coco:{tmp_path}"]) == 2
    assert "coco takes a file" in capsys.readouterr().err


def test_a_sheet_shows_pictures_with_the_boxes_that_training_would_see(folder, tmp_path, capsys):
    sheet = tmp_path / "sheet.png"
    assert main(["data", "sheet", str(folder), "--pictures", "2", "--out", str(sheet)]) == 0
    assert f"wrote {sheet}: 2 of " in capsys.readouterr().err
    assert Image.open(sheet).size == (2 * 256 + 4, 256)
    assert main(["data", "sheet", str(folder), "--out", str(sheet)]) == 2
    assert "exists already" in capsys.readouterr().err
