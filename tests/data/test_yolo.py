"""Folders of YOLO: boxes, layouts, lists of classes, and everything that is wrong with them by file and line."""

import pytest
from annotated_folders import write_image, write_yolo

from frcnn_lite.cli import main
from frcnn_lite.data import AnnotatedPictures, DataSource, choose_splits
from frcnn_lite.data.yolo import read_yolo, yolo_class_names, yolo_splits
from frcnn_lite.data.yolo_yaml import class_list, split_paths

BOX = "0 0.5 0.5 0.25 0.5"  # of 64 x 48: 24 12 40 36
SOUND = {f"images/{split}/{name}.jpg": [BOX] for split, name in (("train", "a"), ("train", "b"), ("val", "c"))}
YAML = "train: images/train\nval: images/val\nnames: [dog, cat]\n"


def test_boxes_are_parts_of_the_picture_and_become_continuous_pixels(tmp_path):
    lines = [BOX, "1 0.5 0.5 1 1", "1 0.25 0.25 0.5 0.25 0.375 0.5", " 0.0\t0.5 0.5 0.25 0.5 "]
    write_yolo(tmp_path, {"images/a.jpg": lines}, {"classes.txt": "dog\ncat\n"})
    (picture,), defects = read_yolo(tmp_path, ["images/a.jpg"])
    boxes = [(thing.name, thing.box, thing.where) for thing in picture.objects]
    assert defects == [] and (picture.file, picture.source) == (tmp_path / "images/a.jpg", "labels/a.txt")
    assert boxes == [
        ("dog", (24, 12, 40, 36), ":1"),
        ("cat", (0, 0, 64, 48), ":2"),
        ("cat", (16, 12, 32, 24), ":3"),  # the box of a polygon
        ("dog", (24, 12, 40, 36), ":4"),
    ]


def test_a_turned_picture_is_measured_as_it_is_looked_at(tmp_path):
    from PIL import Image

    write_yolo(tmp_path, {"images/a.jpg": ["0 0.5 0.5 1 0.5"]})
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: 64 x 48 pixels are shown as 48 x 64
    write_image(tmp_path / "images/a.jpg", exif=exif)
    pictures, defects = read_yolo(tmp_path, ["images/a.jpg"])
    data = AnnotatedPictures(pictures, ["0"], defects=defects)
    assert data.pictures[0].size == (48, 64) and data.defects == ()
    assert data[0].boxes.tolist() == [[0, 16, 48, 48]] and data[0].image.shape == (3, 64, 48)


@pytest.mark.parametrize(
    ("pictures", "files", "splits"),
    [
        (("images/train/a.jpg", "images/val/b.jpg"), {}, {"train": "a", "val": "b"}),
        (
            ("train/images/a.jpg", "valid/images/b.jpg", "test/images/c.jpg"),
            {},
            {"train": "a", "val": "b", "test": "c"},
        ),
        (
            ("images/train2017/a.jpg", "images/val2017/b.jpg"),
            {"data.yaml": "path: ../coco\ntrain: images/train2017  # 118287 images\nval: images/val2017\ntest:\n"},
            {"train": "a", "val": "b"},
        ),
        (
            ("train/images/a.jpg", "valid/images/b.jpg"),
            {"data.yaml": "train: ../train/images\nval: ../valid/images\ntest:\n"},
            {"train": "a", "val": "b"},
        ),
        (
            ("images/train/a.jpg", "images/train/b.jpg", "images/train/c.jpg"),
            {
                "data.yaml": "path: .\ntrain: train.txt\nval: 'val.txt'\n",
                "train.txt": "data/images/train/a.jpg\n\n./images/train/b.jpg\n",
                "val.txt": "/somewhere/images/train/c.jpg",
            },
            {"train": "ab", "val": "c"},
        ),
        (
            ("images/day/a.jpg", "images/night/b.jpg", "images/rain/c.jpg"),
            {"data.yaml": "train:\n  - images/day\n  - images/rain\nval: [images/night]"},
            {"train": "ac", "val": "b"},
        ),
        (
            ("images/train/a.jpg", "images/val/b.jpg", "images/test/c.jpg"),
            {"data.yaml": "train: /data/pets/images/train\ntest: images/train\n"},
            {"train": "a", "val": "b", "test": "c"},
        ),
        (("images/train/a.jpg", "images/val/b.jpg", "images/c.jpg"), {}, {"train": "a", "val": "b", "rest": "c"}),
    ],
)
def test_layouts(tmp_path, pictures, files, splits):
    write_yolo(tmp_path, {name: [BOX] for name in pictures}, files)
    found = {split: "".join(name[-5] for name in names) for split, names in yolo_splits(tmp_path).items()}
    assert found == splits
    read, defects = read_yolo(tmp_path, list(pictures))
    assert defects == [] and [len(picture.objects) for picture in read] == [1] * len(pictures)


@pytest.mark.parametrize("place", ["images/trian", "../valid/images", "empty.txt"])
def test_a_place_in_data_yaml_without_pictures_is_said(tmp_path, capsys, place):
    """The folders called train and val are read all the same, but nobody meant that."""
    files = {"data.yaml": f"train: [images/train]\nval: {place}\nnames: [dog]\n", "empty.txt": ""}
    write_yolo(tmp_path, SOUND, files)
    assert main(["data", "check", str(tmp_path)]) == 1
    page = capsys.readouterr().out
    assert "3 pictures, 3 objects" in page and "splits: val 1, train 2\n" in page
    assert f"unreadable: 1\n  val: {place}: data.yaml names this place, and no picture is there\n" in page


@pytest.mark.parametrize("nothing", ["", "null", "~", "[]"])
def test_a_split_that_data_yaml_calls_empty_is_no_place(tmp_path, nothing):
    write_yolo(tmp_path, SOUND, {"data.yaml": f"{YAML}test: {nothing}\n"})
    assert split_paths(tmp_path).keys() == {"train", "val"}
    assert read_yolo(tmp_path, ["images/train/a.jpg"])[1] == []


def test_folders_of_splits_may_be_links(tmp_path):
    real = write_yolo(tmp_path / "real", {"images/a.jpg": [BOX], "images/more/b.jpg": [BOX]})
    for kind in ("images", "labels"):
        (tmp_path / "linked" / kind / "val").mkdir(parents=True)
        (tmp_path / "linked" / kind / "train").symlink_to(real / kind, target_is_directory=True)
    write_yolo(tmp_path / "linked", {"images/val/c.jpg": [BOX]})
    splits = yolo_splits(tmp_path / "linked")
    assert splits == {"train": ["images/train/a.jpg", "images/train/more/b.jpg"], "val": ["images/val/c.jpg"]}
    pictures, defects = read_yolo(tmp_path / "linked", splits["train"])
    assert defects == [] and [len(picture.objects) for picture in pictures] == [1, 1]


def test_a_label_file_that_two_pictures_could_own_is_read_for_neither(tmp_path):
    write_yolo(tmp_path, {"images/a.jpg": [BOX], "images/b.jpg": [BOX], "images/c.jpg": None, "images/c.png": None})
    write_image(tmp_path / "images/a.png")
    pictures, defects = read_yolo(tmp_path, yolo_splits(tmp_path)["all"])
    assert [picture.file.name for picture in pictures] == ["b.jpg", "c.jpg", "c.png"]
    detail = "labels/a.txt could belong to 2 pictures, whose endings alone differ"
    assert defects == [(name, "unreadable", detail) for name in ("images/a.jpg", "images/a.png")]


@pytest.mark.parametrize("folder", ["images", "obj_train_data", "images/train"])
def test_without_pictures_to_judge_on_a_fifth_is_held_out(tmp_path, folder):
    """A training set alone, also where data.yaml takes it to validate on: nothing is judged that was seen."""
    yaml = {"data.yaml": f"train: {folder}\nval: {folder}\n"} if folder == "images/train" else {}
    write_yolo(tmp_path, {f"{folder}/picture{k}.jpg": [BOX] for k in range(30)}, yaml)
    train, test = choose_splits(f"yolo:{tmp_path}")
    assert (train.split, test.split) == ("train", "test") and len(test.names()) == 6
    assert sorted(train.names() + test.names()) == DataSource.parse(f"yolo:{tmp_path}@all").names()


def test_a_list_of_training_pictures_alone_says_which_there_are(tmp_path):
    listed = "".join(f"images/train/picture{k}.jpg\n" for k in range(30))
    files = {"data.yaml": "train: train.txt\nnames: [dog]\n", "train.txt": listed + "images/train/gone.jpg\n"}
    pictures = {f"images/train/picture{k}.jpg": [BOX] for k in range(30)}
    write_yolo(tmp_path, {**pictures, "images/train/blurred.jpg": [BOX]}, files)
    splits = yolo_splits(tmp_path)
    assert splits["rest"] == ["images/train/blurred.jpg"] and len(splits["all"]) == 31
    assert sorted(splits["train"] + splits["test"]) == splits["all"]
    _, defects = read_yolo(tmp_path, splits["all"])
    assert [defect[:2] for defect in defects] == [("images/train/gone.jpg", "unreadable")]


@pytest.mark.parametrize(
    "names",
    [
        "names: ['dog', \"big cat\"]",
        "nc: 2\nnames: [dog, big cat,\n        ]  # two",
        "names: {0: dog, 1: 'big cat'}",
        "names:\n  0: dog\n  1: big cat  # the second\n\nroboflow:\n  names: [x]\n",
        "names:\n- dog\n- 'big cat'\ndownload: |\n  import os\n  names: [x]\n",
        "\ufeff# a comment\n\nnames : [ dog , big cat ]\n",
        "names:\n  1: 'big cat'\n  0: \"dog\"\n",
    ],
)
def test_names_of_classes_in_the_forms_that_tools_write(tmp_path, names):
    write_yolo(tmp_path, {"images/a.jpg": [BOX]}, {"data.yaml": names, "classes.txt": "other\n"})
    assert class_list(tmp_path) == {0: "dog", 1: "big cat"}
    assert yolo_class_names(tmp_path, []) == ("dog", "big cat")


def test_every_name_and_number_is_a_word(tmp_path):
    """YAML takes `no` for a truth value, 7 for a number and 2024-01-02 for a date; classes are called so, too."""
    text = "names: [no, 7, 2024-01-02, 'it''s', \"q \\u00e9\", C#]\n"
    text += "train: [a/images, 'b, c/images']\nval: ../v/images\ntest:\n"
    (tmp_path / "data.yaml").write_text(text, encoding="utf-8")
    assert list(class_list(tmp_path).values()) == ["no", "7", "2024-01-02", "it's", "q é", "C#"]
    assert split_paths(tmp_path) == {"train": ["a/images", "b, c/images"], "val": ["../v/images"]}


def test_a_tag_that_asks_to_run_something_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.yaml").write_text("names: !!python/object/apply:os.system ['touch gone']")
    assert class_list(tmp_path) == {0: "touch gone"}
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("names: {0: [dog]}", "must be a list of words or a mapping from numbers to words"),
        ("names:\n  - {name: dog}", "must be a list of words or a mapping from numbers to words"),
        ("names: ['dog", "cannot be read as YAML: while scanning"),
        ("names: " + "[" * 5000, "cannot be read as YAML"),
        ("names:\n  dog: 0\n", "must be a list of words or a mapping from numbers to words"),
        ("names:\n", "must be a list of words or a mapping from numbers to words"),
        ("- dog\n- cat\n", "must hold entries such as `names: [dog, cat]`"),
        ("train: {a: b}\nnames: [dog]", "train must be a path or a list of paths"),
        ("names: {0: dog, 00: cat}", "names must give each number once"),
        ("names: {0: dog, 0: cat}", "a key is there twice"),
        ("names: [dog, cat, dog]", "data.yaml names the class 'dog' twice"),
        ("kpt_shape: [17, 3]\nnames: [person]", "hold keypoints"),
        (
            "train: lost.txt\nval: images/val\nnames: [dog]",
            "names a list of pictures, lost.txt, and there is no lost.txt",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, monkeypatch, capsys, text, words):
    monkeypatch.chdir(tmp_path)
    write_yolo(tmp_path, SOUND, {"data.yaml": text})
    assert main(["data", "check", f"yolo:{tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert words in said and "data.yaml" in said and "Traceback" not in said


def test_lists_in_other_encodings_are_named(tmp_path):
    write_yolo(tmp_path, SOUND)
    (tmp_path / "classes.txt").write_bytes("Hündchen".encode("latin-1"))
    with pytest.raises(ValueError, match=r"classes\.txt is not text in UTF-8"):
        class_list(tmp_path)


def test_without_a_list_classes_are_called_by_their_numbers(tmp_path):
    write_yolo(tmp_path, {"images/a.jpg": ["10 0.5 0.5 0.2 0.2", "9 0.5 0.5 0.1 0.1", "1e6 0.5 0.5 0.3 0.3"]})
    pictures, _ = read_yolo(tmp_path, ["images/a.jpg"])
    assert yolo_class_names(tmp_path, pictures) == ("9", "10", "1000000")


@pytest.mark.parametrize(
    ("line", "defect"),
    [
        (
            "0 0.5 0.5 0.2",
            "unreadable: 1\n  labels/train/a.txt:2: a line has 5 numbers (class x y width height), or a class",
        ),
        ("0 0.5 0.5 0.2 0.2 0.9", "and 3 points or more; this one has 6 numbers"),
        ("0 0.1 0.1 0.5 0.1 0.5 0.5 0.1", "this one has 8 numbers"),
        (
            "0 320 240 50 60",
            "labels/train/a.txt:2: 320 is outside 0..1: boxes are parts of the picture's width and height",
        ),
        ("0 0.5 -1.2 0.1 0.1", "labels/train/a.txt:2: -1.2 is outside 0..1"),
        ("0 -0.04 0.5 0.2 0.2", "outside: 1\n  labels/train/a.txt:2: dog -8.96 19.2 3.84 28.8 in 64 x 48"),
        ("0 0.2 0.2 0.5 0.2 0.5 1.1", "outside: 1\n  labels/train/a.txt:2: dog 12.8 9.6 32 52.8 in 64 x 48"),
        ("0_1 0.5 0.5 0.2 0.2", "a line holds numbers alone, got '0_1"),
        ("1e30 0.5 0.5 0.2 0.2", "a class is a whole number from 0 on, got 1e+30"),
        ("0 nan 0.5 0.2 0.2", "labels/train/a.txt:2: nan is outside 0..1"),
        ("dog 0.5 0.5 0.2 0.2", "labels/train/a.txt:2: a line holds numbers alone, got 'dog 0.5 0.5 0.2 0.2'"),
        ("1.5 0.5 0.5 0.2 0.2", "a class is a whole number from 0 on, got 1.5"),
        ("-1 0.5 0.5 0.2 0.2", "a class is a whole number from 0 on, got -1"),
        ("nan 0.5 0.5 0.2 0.2", "a class is a whole number from 0 on, got nan"),
        ("2 0.5 0.5 0.2 0.2", "unknown_class: 1\n  labels/train/a.txt:2: 'class 2'"),
        ("1 0.5 0.5 0 0.2", "no_area: 1\n  labels/train/a.txt:2: cat 32 "),
        ("1 0.9 0.5 0.4 0.2", "outside: 1\n  labels/train/a.txt:2: cat 44.8 19.2 70.4 28.8 in 64 x 48"),
        (BOX, "duplicate: 1\n  labels/train/a.txt:2: dog 24 12 40 36"),
    ],
)
def test_a_wrong_line_is_named_by_file_and_number(tmp_path, capsys, line, defect):
    write_yolo(tmp_path, {**SOUND, "images/train/a.jpg": [BOX, line]}, {"data.yaml": YAML})
    assert main(["data", "check", str(tmp_path)]) == 1
    page = capsys.readouterr().out
    assert defect in page and "defects: 1\n" in page


def test_rounded_numbers_are_no_defect(tmp_path):
    write_yolo(tmp_path, {"images/a.jpg": ["0 0.5 0.5 1.000001 1", "0 -0.000001 0 1.0000004 0 0.5 1"]})
    pictures, defects = read_yolo(tmp_path, ["images/a.jpg"])
    data = AnnotatedPictures(pictures, ["0"], defects=defects)
    assert data.defects == () and data[0].boxes.tolist() == [[0, 0, 64, 48]] * 2


def test_pictures_without_a_label_and_labels_without_a_picture(tmp_path, capsys):
    write_yolo(tmp_path, {**SOUND, "images/train/empty.jpg": [], "images/train/alone.jpg": None}, {"data.yaml": YAML})
    (tmp_path / "labels/train/lost.txt").write_text(BOX)
    (tmp_path / "labels/classes.txt").write_text("dog\ncat\n")
    assert main(["data", "check", str(tmp_path)]) == 1
    page = capsys.readouterr().out
    assert "5 pictures, 3 objects" in page and "splits: train 4, val 1\n" in page
    assert "unreadable: 1\n  labels/train/lost.txt: there is no picture for this label file\n" in page
    without = "images/train/alone.jpg without labels/train/alone.txt: no objects"
    assert f"empty: 2\n  {without}\n  labels/train/empty.txt: no objects" in page


def test_damaged_and_missing_pictures(tmp_path, capsys):
    write_image(tmp_path.parent / "secret.jpg")
    lost = ("images/train/no.jpg", "../secret.jpg", "..", f"{tmp_path.parent}/secret.jpg")
    listed = "\n".join(["images/train/a.jpg", *lost])
    files = {"data.yaml": "train: train.txt\nval: images/val\n", "train.txt": listed}
    write_yolo(tmp_path, {**SOUND, "images/val/d.jpg": [BOX]}, files)
    (tmp_path / "images/val/d.jpg").write_bytes(b"not a picture")
    assert main(["data", "check", str(tmp_path)]) == 1
    page = capsys.readouterr().out
    assert all(f"  {name}: the folder has no such picture\n" in page for name in lost)
    assert "images/val/d.jpg: cannot be read as an image" in page


def test_labels_beside_their_pictures(tmp_path):
    write_yolo(tmp_path, {"obj_train_data/a.jpg": [BOX]}, {"obj.names": "dog\n"})
    write_image(tmp_path / "images.d" / "far" / "b.jpg")
    assert yolo_splits(tmp_path)["all"] == ["obj_train_data/a.jpg"]
    pictures, defects = read_yolo(tmp_path, ["obj_train_data/a.jpg"])
    assert defects == [] and pictures[0].objects[0].name == "dog"
    mixed = write_yolo(tmp_path / "mixed", {"images/a.jpg": None})
    (mixed / "images/a.txt").write_text(BOX)
    assert len(read_yolo(mixed, ["images/a.jpg"])[0][0].objects) == 1


def test_a_folder_with_nothing_in_it_and_the_one_above(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no pictures"):
        DataSource.parse(f"yolo:{tmp_path}").splits()
    write_yolo(tmp_path / "pets", SOUND)
    with pytest.raises(FileNotFoundError, match=r"; is it .*pets\?"):
        DataSource.parse(f"yolo:{tmp_path}").splits()
