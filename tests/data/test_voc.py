from xml.parsers.expat import ExpatError

import pytest
from annotated_folders import write_annotation, write_image, write_voc

from frcnn_lite.data.voc import parse_xml, read_voc, voc_splits


def test_boxes_count_from_zero_and_end_after_their_last_pixel(tmp_path):
    write_voc(tmp_path, {"a": [("dog", (1, 1, 10, 20)), ("cat", (5, 6, 64, 48), True)]})
    (picture,), defects = read_voc(tmp_path, ["a"])
    assert picture.size == (64, 48) and picture.file.name == "a.jpg" and defects == []
    dog, cat = picture.objects
    assert (dog.name, dog.box, dog.ignored) == ("dog", (0, 0, 10, 20), False)
    assert (cat.name, cat.box, cat.ignored, cat.crowd) == ("cat", (4, 5, 64, 48), True, False)


def test_splits_are_those_of_the_lists(tmp_path):
    lists = {"train": ["a"], "val": ["b"], "trainval": ["a", "b"], "dog_train": ["a  1"], "dog_val": ["b -1"]}
    write_voc(tmp_path, {"a": [], "b": []}, lists)
    assert voc_splits(tmp_path) == {"train": ["a"], "val": ["b"], "trainval": ["a", "b"]}


def test_without_lists_a_fifth_is_held_out_the_same_every_time(tmp_path):
    write_voc(tmp_path, {f"picture{k}": [] for k in range(60)})
    splits = voc_splits(tmp_path)
    assert sorted(splits["train"] + splits["test"]) == splits["all"] and len(splits["all"]) == 60
    assert len(splits["test"]) == 12
    (tmp_path / "Annotations" / "picture0.xml").unlink()
    assert set(voc_splits(tmp_path)["test"]) >= set(splits["test"]) - {"picture0"}


def test_lists_without_anything_to_judge_on_say_which_pictures_there_are(tmp_path):
    names = [f"picture{k}" for k in range(30)]
    write_voc(tmp_path, {name: [] for name in [*names, "other"]}, {"train": names})
    splits = voc_splits(tmp_path)
    assert splits["all"] == sorted(names) == sorted(splits["train"] + splits["test"]) and len(splits["test"]) > 2


def test_tools_lay_files_out_in_their_own_way(tmp_path):
    write_voc(tmp_path / "voc", {"a": [("dog", (1, 1, 10, 20))]})
    flat = tmp_path / "flat"
    flat.mkdir()
    (tmp_path / "voc/JPEGImages/a.jpg").rename(flat / "a.JPG")
    (tmp_path / "voc/Annotations/a.xml").rename(flat / "a.xml")
    (picture,), _ = read_voc(flat, voc_splits(flat)["all"])
    assert picture.file == flat / "a.JPG" and picture.objects[0].name == "dog"


@pytest.mark.parametrize(("images", "annotations"), [("images", "annots"), ("Images", "Annotations")])
def test_folders_may_be_called_as_public_data_calls_them(tmp_path, images, annotations):
    write_voc(tmp_path, {"a": [("dog", (1, 1, 10, 20))]})
    (tmp_path / "JPEGImages").rename(tmp_path / images)
    (tmp_path / "Annotations").rename(tmp_path / annotations)
    (picture,), defects = read_voc(tmp_path, voc_splits(tmp_path)["all"])
    assert picture.file.is_file() and picture.objects[0].name == "dog" and defects == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<annotation><object>", "no element found|unclosed"),
        ("", "no element found"),
        ("<annotation><object><name>dog</name></object></annotation>", "has no bndbox"),
        (
            "<annotation><object><bndbox><xmin>left</xmin></bndbox></object></annotation>",
            "xmin is not a number: 'left'",
        ),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>', "a document type with entities"),
        ('<!DOCTYPE a SYSTEM "a.dtd"><annotation>&x;</annotation>', "a document type with entities"),
        ("<html></html>", "the first element must be annotation, got 'html'"),
        ("<annotation><object><object/></object></annotation>", "an object holds a second one"),
        ("<annotation><size><width>inf</width></size></annotation>", "whole numbers of pixels, got inf"),
        ("<annotation><size><width>40.9</width></size></annotation>", "whole numbers of pixels, got 40.9"),
    ],
)
def test_a_damaged_annotation_is_reported_by_file(tmp_path, text, words):
    write_voc(tmp_path, {"a": [], "b": []})
    (tmp_path / "Annotations" / "b.xml").write_text(text)
    pictures, (defect,) = read_voc(tmp_path, ["a", "b"])
    assert [picture.file.stem for picture in pictures] == ["a"]
    assert (defect.file, defect.kind) == ("Annotations/b.xml", "unreadable")
    with pytest.raises((ValueError, ExpatError), match=words):
        raise ValueError(defect.detail)


def test_entities_are_refused_in_any_encoding():
    bomb = '<!DOCTYPE z [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><annotation>&b;</annotation>'
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(ValueError, match="document type"):
            parse_xml(f'<?xml version="1.0" encoding="{encoding}"?>{bomb}'.encode(encoding))


@pytest.mark.parametrize("name", ["../../secret.jpg", "/etc/passwd", "..\\secret.jpg", "C:\\secret.jpg", "\\\\host\\x"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    write_image(tmp_path / "secret.jpg")
    root = write_voc(tmp_path / "data" / "voc", {"a": []})
    write_annotation(root, "b", [], filename=name)
    pictures, (defect,) = read_voc(root, ["b"])
    assert pictures == [] and "leads out of JPEGImages/" in defect.detail
    _, (defect,) = read_voc(root, [name.removesuffix(".jpg")])
    assert "leads out of Annotations/" in defect.detail


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no \.xml files, looked for in: Annotations"):
        voc_splits(tmp_path)
    write_voc(tmp_path / "devkit" / "VOC2007", {"a": []})
    with pytest.raises(FileNotFoundError, match=r"; is it .*devkit/VOC2007\?"):
        voc_splits(tmp_path)
    flat = tmp_path / "boards" / "images" / "train"
    flat.mkdir(parents=True)
    (tmp_path / "devkit/VOC2007/Annotations/a.xml").rename(flat / "a.xml")
    with pytest.raises(FileNotFoundError, match=r"; is it .*boards/images/train\?"):
        voc_splits(tmp_path / "boards")
    write_voc(tmp_path, {"a": []}, {"train": ["a", "b"]})
    write_annotation(tmp_path, "c", [])
    _, defects = read_voc(tmp_path, ["b", "c"])
    assert "b.xml" in defects[0].detail and "no image JPEGImages/c.*" in defects[1].detail
