"""Words, units and numbers of the kinds that tools write where a number, a flag or an id belongs, in every reader."""

import json

import pytest
from annotated_folders import write_coco, write_voc, write_yolo

from frcnn_lite.cli import main
from frcnn_lite.data.coco import read_coco
from frcnn_lite.data.values import flag, sides
from frcnn_lite.data.voc import read_voc

BOX = {"bbox": [8, 8, 32, 32], "category_id": 7}
OBJECT = "<name>dog</name><bndbox><xmin>{}</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"


@pytest.mark.parametrize(
    ("value", "is_set"), [("0", 0), ("False", 0), (None, 0), (0.0, 0), ("true", 1), (1, 1), (True, 1)]
)
def test_flags_are_words_and_numbers(tmp_path, value, is_set):
    assert flag(value, "iscrowd") is bool(is_set)
    for name in ("iscrowd", "ignore"):
        file = write_coco(tmp_path / "a.json", {"x.jpg": [{**BOX, name: value}]})
        assert read_coco(file, ["x.jpg"])[0][0].objects[0].ignored is bool(is_set)


def test_a_flag_in_voc_and_a_word_that_is_none(tmp_path):
    root = write_voc(tmp_path, {"a": [], "b": []})
    for name, word in (("a", "True"), ("b", "perhaps")):
        text = f"<annotation><object>{OBJECT.format(1)}<difficult>{word}</difficult></object></annotation>"
        (root / "Annotations" / f"{name}.xml").write_text(text)
    (picture,), (defect,) = read_voc(root, ["a", "b"])
    assert picture.objects[0].ignored and defect.detail == "difficult must be 0 or 1, got 'perhaps'"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1e999", "no_area: 1\n  a.json: x.jpg: dog inf 8 inf 40"),
        ("1" + "0" * 400, "no_area: 1\n  a.json: x.jpg: dog inf 8 inf 40"),
        ("NaN", "no_area: 1"),
        ('"8,5"', "unreadable: 1\n  a.json: x.jpg: a number of the bbox is not a number: '8,5'"),
        ("[8]", "unreadable: 1\n  a.json: x.jpg: a number of the bbox is not a number: [8]"),
        ("true", "unreadable: 1\n  a.json: x.jpg: a number of the bbox is not a number: True"),
    ],
)
def test_numbers_that_no_box_has(tmp_path, capsys, text, words):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX]})
    file.write_text(file.read_text().replace("[8, ", f"[{text}, "))
    assert main(["data", "check", str(file)]) == 1
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "entry", "words"),
    [
        ("categories", {"id": "2", "name": "x"}, "'2' is a text and 7 a number; write all as numbers"),
        ("categories", {"id": [1], "name": "x"}, "categories[2]: id must be a whole number or a text, got [1]"),
        ("categories", {"id": 1, "name": None}, "categories[2]: name must be a whole number or a text, got None"),
        ("images", {"id": True, "file_name": "x.jpg"}, "images[1]: id must be a whole number or a text, got True"),
        ("images", {"id": 1, "file_name": None}, "images[1]: file_name must be a text, got None"),
        ("images", {"id": 1}, "images[1] must be an object with id, file_name, got {'id': 1}"),
        ("annotations", {"image_id": "100"}, "the ids of 'images' must be of one kind, and '100' is a text"),
        ("annotations", {"image_id": 100, "category_id": "7"}, "the ids of 'categories' must be of one kind"),
        ("annotations", {"image_id": {}}, "annotations[1]: image_id must be a whole number or a text, got {}"),
    ],
)
def test_entries_that_nothing_can_be_found_by(tmp_path, capsys, key, entry, words):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX]})
    content = json.loads(file.read_text())
    content[key].append(entry)
    file.write_text(json.dumps(content))
    assert main(["data", "check", str(file)]) == 2
    assert words in capsys.readouterr().err


def test_a_key_that_an_object_has_twice(tmp_path, capsys):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX]})
    file.write_text(file.read_text().replace('"images": ', '"images": [], "images": '))
    assert main(["data", "check", str(file)]) == 2
    assert "an object of the file has 'images' twice" in capsys.readouterr().err


def test_sizes():
    assert sides("64", 48.0) == (64, 48)
    assert sides(0, 0) is sides(None, 48) is sides("-1", "-1") is None
    for width in ("forty", "inf", 40.5, True, []):
        with pytest.raises(ValueError, match=r"width is not a number|whole numbers of pixels"):
            sides(width, 48)


def test_parts_in_place_of_pixels(tmp_path):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [{**BOX, "bbox": [0.1, 0.2, 0.9, 0.5]}], "y.jpg": [BOX]})
    root = write_voc(tmp_path / "voc", {"x": [("dog", (0.1, 0.2, 1.0, 0.5))], "y": [("dog", (1, 1, 9, 9))]})
    for pictures, (defect,) in (read_coco(file, ["x.jpg", "y.jpg"]), read_voc(root, ["x", "y"])):
        assert pictures[0].file.stem == "y" and "boxes are in pixels here, not parts of the picture" in defect.detail


CORNER, CENTRE, CORNERS = "a corner, width and height", "the centre, width and height", "two corners"


@pytest.mark.parametrize(
    ("meant", "written"),
    [(CORNERS, CORNER), (CENTRE, CORNER), (CORNER, CORNERS), (CENTRE, CORNERS), (CORNERS, CENTRE), (CORNER, CENTRE)],
)
def test_four_numbers_that_are_meant_otherwise_are_told(tmp_path, capsys, meant, written):
    boxes = [(2, 3, 30, 20), (40, 10, 60, 44), (4, 20, 20, 40), (36, 30, 60, 46), (30, 4, 62, 30), (1, 28, 20, 47)]
    forms = {
        CORNERS: lambda a, b, c, d: (a, b, c, d),
        CORNER: lambda a, b, c, d: (a, b, c - a, d - b),
        CENTRE: lambda a, b, c, d: ((a + c) / 2, (b + d) / 2, c - a, d - b),
    }
    numbers = [forms[meant](*box) for box in boxes]
    if written == CORNER:
        data = write_coco(tmp_path / "a.json", {f"{k}.jpg": [{**BOX, "bbox": n}] for k, n in enumerate(numbers)})
    elif written == CORNERS:
        data = write_voc(tmp_path, {f"{k}": [("dog", n)] for k, n in enumerate(numbers)})
    else:
        lines = [f"0 {a / 64} {b / 48} {c / 64} {d / 48}" for a, b, c, d in numbers]
        data = write_yolo(tmp_path, {f"images/{k}.jpg": [line] for k, line in enumerate(lines)})
    main(["data", "check", str(data)])
    page = capsys.readouterr().out
    assert f"Were their four numbers {meant}, it would be 0; this format has {written}" in page


def test_percentages_are_told(tmp_path, capsys):
    boxes = {f"{k}.jpg": [{**BOX, "bbox": [5 * k, 5 * k, 30, 20]}] for k in range(12)}
    main(["data", "check", str(write_coco(tmp_path / "a.json", boxes, size=(320, 240)))])
    assert "if these are percentages, write pixels" in capsys.readouterr().out
