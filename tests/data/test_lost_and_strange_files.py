"""Files that a reader could pass over, and names and encodings that it could stumble upon."""

import json
import os

import numpy as np
import pytest
from annotated_folders import write_annotation, write_coco, write_image, write_voc, write_yolo
from PIL import Image

from frcnn_lite.cli import main
from frcnn_lite.data import DataSource, read_image
from frcnn_lite.data.image_file import look_at_image
from frcnn_lite.data.voc import parse_xml
from frcnn_lite.engine.datasets import Pictures

DOG = [("dog", (1, 1, 30, 40))]
BOX = {"bbox": [8, 8, 32, 32], "category_id": 7}


def move(root, old, new):
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / old).rename(root / new)


@pytest.mark.parametrize("listed", [False, True])
def test_voc_reads_subfolders_and_endings_of_any_case(tmp_path, listed):
    root = write_voc(tmp_path, dict.fromkeys("abcd", DOG), {"test": list("abcd")} if listed else None)
    move(root, "Annotations/b.xml", "Annotations/b.XML")
    for kind, ending in (("Annotations", "xml"), ("JPEGImages", "jpg")):
        move(root, f"{kind}/c.{ending}", f"{kind}/day2/c.{ending}")
    move(root, "Annotations/d.xml", "Annotations/more/d.xml")
    pictures, defects = DataSource("voc", root).read()
    assert sorted(picture.file.name for picture in pictures) == ["a.jpg", "b.jpg", "c.jpg", "d.jpg"] and defects == []


def test_an_xml_file_that_is_not_read_is_named(tmp_path, capsys):
    root = write_voc(tmp_path, {"a": DOG, "b": DOG}, {"test": ["a"]})
    move(root, "Annotations/b.xml", "Annotations/day2/b.xml")
    (root / "other").mkdir()
    (root / "other" / "c.xml").write_text("<annotation/>")
    main(["data", "check", str(root)])
    page = capsys.readouterr().out
    assert "Annotations/day2/b.xml: no list" in page and "other/c.xml" in page


def test_labels_in_capitals(tmp_path):
    root = write_yolo(tmp_path, {"images/a.jpg": ["0 0.5 0.5 0.2 0.2"]})
    move(root, "labels/a.txt", "labels/a.TXT")
    (picture,), defects = DataSource("yolo", root).read()
    assert len(picture.objects) == 1 and defects == []


def test_a_folder_may_be_called_like_a_kind(tmp_path, monkeypatch):
    write_voc(tmp_path / "voc", {"a": DOG})
    monkeypatch.chdir(tmp_path)
    assert DataSource.parse("voc").path == tmp_path / "voc"


def test_gif_is_a_picture_everywhere(tmp_path):
    coco = write_coco(tmp_path / "a.json", {"a.gif": [BOX]})
    voc = write_voc(tmp_path / "voc", {})
    write_image(voc / "JPEGImages" / "a.gif")
    write_annotation(voc, "a", DOG)
    yolo = write_yolo(tmp_path / "yolo", {"images/a.gif": ["0 0.5 0.5 0.2 0.2"]})
    for data in (coco, voc, yolo):
        pictures, defects = DataSource.parse(str(data)).read()
        assert len(pictures) == 1 and defects == []


@pytest.mark.parametrize("dtype", ["uint16", ">u2", "int32", "float32"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (300, 4395), (0, 1023), (-20, 65535)])
def test_deep_pictures_are_stretched_to_8_bits(tmp_path, dtype, low, high):
    low, high = (low, high) if dtype == "float32" else (max(low, 0), max(high, 200))
    values = np.linspace(low, high, 64 * 48).reshape(48, 64).astype(dtype)
    values.flat[5] = low if dtype != "float32" else np.nan
    Image.fromarray(values).save(tmp_path / "a.tif")
    grey = np.array(read_image(tmp_path / "a.tif"))[:, :, 0]
    assert grey[0, :8].max() <= 1 and grey[-1, -8:].min() >= 254 and np.ptp(grey[24]) >= 2
    assert not look_at_image(tmp_path / "a.tif", None).flat


def test_one_pixel_that_is_broken_does_not_hide_the_others(tmp_path):
    values = np.full((48, 64), 29000, dtype=np.uint16)
    values[:, 32:], values[0, 0], values[5, 5] = 31000, 0, 65535
    Image.fromarray(values).save(tmp_path / "a.png")
    grey = np.array(read_image(tmp_path / "a.png"))[:, :, 0]
    assert grey[10, 10] == 0 and grey[10, 50] == 255


def test_a_picture_in_which_nothing_can_be_seen_is_told(tmp_path, capsys):
    file = write_coco(tmp_path / "a.json", {"x.png": [BOX], "y.png": [BOX]})
    Image.new("RGB", (64, 48), (3, 9, 1)).save(tmp_path / "images" / "x.png")
    main(["data", "check", str(file)])
    assert "doubt: 1 pictures have hardly more than one brightness" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("turn", "annotated", "in_doubt"), [(3, (64, 48), True), (6, (48, 64), False), (6, None, True), (9, None, False)]
)
def test_a_turn_that_the_size_does_not_decide_is_told(tmp_path, turn, annotated, in_doubt):
    exif = Image.Exif()
    exif[0x0112] = turn
    write_image(tmp_path / "a.jpg", exif=exif)
    look = look_at_image(tmp_path / "a.jpg", annotated)
    assert (look.turned, look.in_doubt) == (turn != 9, in_doubt)


def test_turned_pictures_are_counted(tmp_path, capsys):
    exif = Image.Exif()
    exif[0x0112] = 6
    root = write_yolo(tmp_path, {"images/a.jpg": ["0 0.5 0.5 0.2 0.2"]})
    write_image(root / "images/a.jpg", exif=exif)
    assert main(["data", "check", str(root)]) == 0
    page = capsys.readouterr().out
    assert "turned (EXIF): 1\ndoubt: 1 pictures carry a turn of the camera (EXIF)" in page and "a.jpg" in page


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("", "utf-8-sig"),
        ("<?xml version='1.0' encoding='gb2312'?>", "gb2312"),
        ("<?xml version='1.0' encoding='Big5'?>", "big5"),
        ("<?xml version='1.0' encoding='utf-16'?>", "utf-16"),
        ("<?xml version='1.0' encoding='utf-16'?>", "utf-8"),  # as a .NET string writer says it
        ("<!DOCTYPE annotation>", "utf-8"),
        ('<!DOCTYPE annotation SYSTEM "annotation.dtd">', "utf-8"),
    ],
)
def test_encodings_of_xml(head, encoding):
    assert parse_xml(f"{head}<annotation>直</annotation>".encode(encoding)).text == "直"


@pytest.mark.parametrize(
    ("declared", "words"), [("", "in utf-8, and declares no other"), ("x-y", "in x-y, as it declares")]
)
def test_an_encoding_that_is_wrong_is_named(declared, words):
    head = f"<?xml version='1.0' encoding='{declared}'?>" if declared else ""
    with pytest.raises(ValueError, match=rf"{words}.*; save it as UTF-8"):
        parse_xml(f"{head}<annotation>Straße</annotation>".encode("latin-1"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_coco_with_a_mark_of_its_encoding(tmp_path, encoding):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [BOX]})
    file.write_text(file.read_text(), encoding=encoding)
    assert len(DataSource("coco", file).read()[0]) == 1


def test_names_that_are_not_text(tmp_path, capsys):
    """As an old archive unpacks them: the file is found by its bytes, and its name is printed with escapes."""
    strange = os.fsdecode(b"caf\xe9")
    voc = write_voc(tmp_path / "voc", {"a": DOG, "b": DOG})
    for path in ("Annotations/a.xml", "JPEGImages/a.jpg"):
        move(voc, path, path.replace("a.", f"{strange}."))
    yolo = write_yolo(tmp_path / "yolo", {f"images/{strange}.jpg": ["9 2 .5 .2 .2"], "images/a.jpg": ["9 .5 .5 .2 .2"]})
    assert main(["data", "check", str(voc)]) == 0 and main(["data", "check", str(yolo)]) == 1
    assert r"labels/caf\udce9.txt:1" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a" * 5000 + ".jpg", "\ud800.jpg", "\0.jpg", "\x1b[31m.jpg", "a\nb.jpg"])
def test_a_name_that_no_file_has_is_a_defect_of_one_picture(tmp_path, capsys, name):
    file = write_coco(tmp_path / "a.json", {"SWAP.jpg": [BOX], "y.jpg": [BOX]})
    text = file.read_text().replace('"SWAP.jpg"', json.dumps(name))
    file.write_text(text.replace('"dog"', '"\\u001b[31mdog"'))
    assert main(["data", "check", str(file)]) == 1
    page = capsys.readouterr().out
    assert "1 pictures, 1 objects" in page and "unreadable: 1" in page and r"\x1b[31mdog" in page
    assert not set("\x1b\0\ud800") & set(page) and "a\nb.jpg" not in page


def test_the_file_says_which_of_two_images_is_meant(tmp_path):
    root = write_voc(tmp_path, {"a": DOG, "b": DOG})
    for name in "ab":
        write_image(root / "JPEGImages" / f"{name}.png")
    write_annotation(root, "b", DOG, filename="photo.jpg")
    (picture,), (defect,) = DataSource("voc", root).read()
    assert picture.file.name == "a.jpg" and "b.jpg and b.png have this name" in defect.detail


def test_a_training_repeats_what_is_doubtful_and_what_is_left_out(tmp_path):
    lines = {f"images/{name}.jpg": [f"0 0.{k} 0.{k} 0.9 0.9"] for k, name in enumerate("abc", start=1)}
    root = write_yolo(tmp_path, {**lines, "images/d.jpg": ["0 0.5 0.5 0 0"]})
    source = DataSource("yolo", root)
    with pytest.warns(UserWarning) as told:
        Pictures().annotated(source, 10, ("0",), ())
    said = "\n".join(str(warning.message) for warning in told)
    assert "outside: 3" in said and "pictures that are left out: 1" in said and "numbers two corners" in said
