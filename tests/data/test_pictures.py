import math
import pickle

import pytest
import torch
from annotated_folders import write_annotation, write_image, write_voc
from PIL import Image

from frcnn_lite.data import AnnotatedPictures, Handling, LetterboxedScenes, describe_defects
from frcnn_lite.data.annotated import Object, Picture
from frcnn_lite.data.letterbox import Letterbox
from frcnn_lite.data.pictures import _sound_objects
from frcnn_lite.data.voc import read_voc


def open_voc(root, names, classes=("cat", "dog"), **handling):
    pictures, defects = read_voc(root, names)
    return AnnotatedPictures(pictures, classes, Handling(**handling), defects)


@pytest.fixture
def broken(tmp_path):
    """One picture for each defect, and one without."""
    root = write_voc(
        tmp_path,
        {
            "sound": [("dog", (1, 1, 10, 20)), ("cat", (5, 6, 30, 40), True)],
            "no_area": [
                ("dog", (10, 10, 10, 10)),
                ("dog", (30, 1, 20, 20)),
                ("dog", ("nan", 1, 9, 9)),
                ("cat", (1, 1, 9, 9)),
            ],
            "outside": [("dog", (-5, 1, 70, 49))],
            "unknown": [("cow", (1, 1, 10, 20)), ("dog", (1, 1, 10, 20))],
            "twice": [("dog", (1, 1, 10, 20)), ("cat", (1, 1, 10, 20)), ("dog", (1, 1, 10, 20))],
            "empty": [],
            "cut": [("dog", (1, 1, 10, 20))],
            "text": [("dog", (1, 1, 10, 20))],
            "other": [("dog", (1, 1, 10, 20))],
        },
    )
    images = root / "JPEGImages"
    data = (images / "cut.jpg").read_bytes()
    (images / "cut.jpg").write_bytes(data[: len(data) // 2])
    (images / "text.jpg").write_text("this is not a picture")
    write_image(images / "other.jpg", 32, 24)
    (root / "Annotations" / "damaged.xml").write_text("<annotation>")
    return root


NAMES = ["sound", "no_area", "outside", "unknown", "twice", "empty", "cut", "text", "other", "damaged"]


def test_every_defect_is_reported_by_file(broken):
    data = open_voc(broken, NAMES)
    found = {(defect.file.split("/")[-1].partition(".")[0], defect.kind) for defect in data.defects}
    assert found == {
        ("no_area", "no_area"), ("outside", "outside"), ("unknown", "unknown_class"), ("empty", "empty"),
        ("twice", "duplicate"),
        ("cut", "unreadable"), ("text", "unreadable"), ("damaged", "unreadable"), ("other", "other_size"),
    }  # fmt: skip
    assert [p.file.stem for p in data.pictures] == ["sound", "no_area", "outside", "unknown", "twice", "empty"]
    report = describe_defects(data.defects, per_kind=1)
    assert (
        "unreadable: 3" in report and "and 2 more" in report and "annotated as 64 x 48, the image is 32 x 24" in report
    )


def test_and_what_is_left_is_sound(broken):
    data = open_voc(broken, NAMES)
    sound, no_area, outside, unknown, twice, empty = (data[k] for k in range(6))
    assert sound.image.shape == (3, 48, 64) and sound.image.dtype == torch.uint8
    assert sound.boxes.tolist() == [[0, 0, 10, 20]] and sound.labels.tolist() == [1]
    assert sound.ignored.boxes.tolist() == [[4, 5, 30, 40]] and sound.ignored.labels.tolist() == [0]
    assert no_area.boxes.tolist() == [[0, 0, 9, 9]] and no_area.ignored is None
    assert outside.boxes.tolist() == [[0, 0, 64, 48]]
    assert unknown.labels.tolist() == [1]
    assert twice.labels.tolist() == [1, 0] and twice.boxes.tolist() == [[0, 0, 10, 20]] * 2
    assert empty.boxes.shape == (0, 4) and empty.labels.shape == (0,)
    assert torch.equal(pickle.loads(pickle.dumps(data))[0].boxes, sound.boxes)


def test_handling_is_a_choice(broken):
    assert open_voc(broken, ["outside"], outside="drop", emptied="keep").pictures[0].objects == ()
    for kind in ("no_area", "outside", "unknown", "twice"):
        field = {"unknown": "unknown_class", "twice": "duplicate"}.get(kind, kind)
        assert len(open_voc(broken, [kind, "sound"], **{field: "skip"})) == 1
    assert len(open_voc(broken, ["empty", "sound"], empty="skip")) == 1
    assert len(open_voc(broken, ["twice"], duplicate="keep").pictures[0].objects) == 3
    assert len(open_voc(broken, ["other"], other_size="keep")) == 1
    for kind, name in (("unreadable", "cut"), ("no_area", "no_area"), ("unknown_class", "unknown"), ("empty", "empty")):
        with pytest.raises(ValueError, match=rf"(?s)not to be put up with:\n{kind}: \d\n.*{name}"):
            open_voc(broken, NAMES, **{kind: "raise"})


def test_handling_is_read_from_text():
    assert Handling.parse(["outside=drop", "empty=skip"]) == Handling(outside="drop", empty="skip")
    for choice, words in (("box=drop", "no defect is called 'box'"), ("outside=keep", "`outside` must be one of")):
        with pytest.raises(ValueError, match=words):
            Handling.parse([choice])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_that_is_not_finite_gets_through(number):
    for place in range(4):
        box = [1.0, 1.0, 9.0, 9.0]
        box[place] = number
        picture = Picture(None, "a.xml", None, (Object(tuple(box), "dog"),))
        kept, (defect,) = _sound_objects(picture, (20, 20), frozenset({"dog"}), Handling())
        assert kept == () and defect.kind == "no_area"


def test_a_pixel_too_far_is_the_writers_way_of_counting(tmp_path):
    root = write_voc(tmp_path, {"a": [("dog", (0, 0, 64, 48))]})
    data = open_voc(root, ["a"])
    assert data.defects == () and data[0].boxes.tolist() == [[0, 0, 64, 48]]


@pytest.mark.parametrize(("annotated", "upright"), [((48, 64), True), ((64, 48), False), ((0, 0), True)])
def test_a_turned_camera(tmp_path, annotated, upright):
    """Annotated as most tools show it, turned, or as its pixels are stored: the written size tells."""
    root = write_voc(tmp_path, {"a": []})
    exif = Image.Exif()
    exif[0x0112] = 6
    write_image(root / "JPEGImages" / "a.jpg", 64, 48, exif=exif)
    write_annotation(root, "a", [("dog", (1, 1, 40, 47))], annotated)
    data = open_voc(root, ["a"])
    assert data.defects == () and data[0].image.shape == ((3, 64, 48) if upright else (3, 48, 64))


def test_pictures_of_mixed_sizes_make_a_batch(tmp_path):
    root = write_voc(tmp_path, {"wide": [("dog", (1, 1, 64, 48))]})
    write_image(root / "JPEGImages" / "high.png", 30, 90)
    write_annotation(root, "high", [("cat", (1, 1, 30, 90), True)], (30, 90))
    scenes = LetterboxedScenes(open_voc(root, ["wide", "high"]), Letterbox(96, 96))
    assert scenes[0].image.shape == scenes[1].image.shape == (3, 96, 96)
    assert scenes[0].boxes.tolist() == [[0, 0, 96, 72]]
    assert scenes[1].ignored.boxes.tolist() == [[0, 0, 32, 96]]
