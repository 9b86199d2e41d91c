"""Ids, names and files that are there twice: no picture learns from what belongs to a different one."""

import json

import pytest
from annotated_folders import write_annotation, write_coco, write_voc

from frcnn_lite.cli import main
from frcnn_lite.data import DataSource

BOX = {"bbox": [8, 8, 32, 32], "category_id": 7}


def changed(file, key, *entries):
    content = json.loads(file.read_text())
    content[key] += entries
    file.write_text(json.dumps(content))
    return DataSource("coco", file)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"id": 100, "file_name": "y.jpg"}, "2 images have the id 100"),
        ({"id": 7, "file_name": "x.jpg"}, "the file lists this image 2 times"),
        ({"id": 7, "file_name": "./x.jpg"}, "the file lists this image 2 times"),
    ],
)
def test_neither_of_two_images_is_read(tmp_path, entry, words):
    source = changed(write_coco(tmp_path / "a.json", {"x.jpg": [BOX], "z.jpg": [BOX]}), "images", entry)
    pictures, defects = source.read()
    assert [picture.file.name for picture in pictures] == ["z.jpg"]
    names = ["a.json: x.jpg", f"a.json: {entry['file_name']}"]
    assert defects == [(name, "not_unique", words) for name in names]


def test_a_category_of_two_names_is_in_no_picture(tmp_path):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX, {**BOX, "category_id": 14}], "z.jpg": []})
    (picture,), defects = changed(file, "categories", {"id": 7, "name": "cow"}).read()
    assert picture.file.name == "z.jpg" and [d.kind for d in defects] == ["not_unique", "unreadable"]
    assert defects[0].file == "a.json: category id 7" and defects[1].detail == "category 7 is called cow and dog"


def test_categories_of_one_name_are_one_class_and_those_without_objects_are_told(tmp_path, capsys):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX, {"bbox": [1, 1, 9, 9], "category_id": 0}]})
    source = changed(file, "categories", {"id": 0, "name": "dog "})
    assert source.class_names([]) == ("dog", "cat")
    assert main(["data", "check", str(file)]) == 1
    page = capsys.readouterr().out
    assert "  dog       2 in 1 pictures\n  cat       0 in 0 pictures\n" in page
    assert "a.json: category name 'dog': 2 categories have this name" in page


def test_an_image_that_two_annotations_name_is_in_neither(tmp_path):
    root = write_voc(tmp_path, {name: [("dog", (1, 1, 9, 9))] for name in "ab"})
    write_annotation(root, "c", [("cat", (5, 5, 20, 20))], filename="a.jpg")
    pictures, defects = DataSource("voc", root).read()
    assert [picture.file.name for picture in pictures] == ["b.jpg"]
    assert [(d.file, d.kind) for d in defects] == [(f"Annotations/{n}.xml", "not_unique") for n in "ac"]
