import pytest
from annotated_folders import write_coco, write_voc, write_yolo

from frcnn_lite.data import DataSource, choose_splits
from frcnn_lite.data.annotated import hold_out


def splits_of(data, test_data=""):
    return tuple(source.split for source in choose_splits(data, test_data))


@pytest.mark.parametrize(
    ("lists", "chosen"),
    [
        ({"train": "ab", "val": "cd", "trainval": "abcd", "test": "ef"}, ("trainval", "test")),
        ({"train": "ab", "val": "cd", "trainval": "abcd"}, ("train", "val")),  # no picture is judged that was seen
        ({"train": "ab", "test": "ef"}, ("train", "test")),
        ({"trainval": "ab", "val": "c"}, ("trainval", "val")),
        (None, ("train", "test")),
    ],
)
def test_training_never_takes_what_is_judged_on(tmp_path, lists, chosen):
    names = "abcdef" if lists else [f"picture{k}" for k in range(30)]
    write_voc(tmp_path, {name: [] for name in names}, {k: list(v) for k, v in lists.items()} if lists else None)
    assert splits_of(f"voc:{tmp_path}") == chosen


def test_splits_can_be_named(tmp_path):
    lists = {"train": ["a"], "val": ["b"], "trainval": ["a", "b"], "test": ["c"]}
    write_voc(tmp_path, {"a": [], "b": [], "c": []}, lists)
    name = f"voc:{tmp_path}"
    assert splits_of(f"{name}@train", f"{name}@val") == ("train", "val")
    assert splits_of(f"{name}@test") == ("test", "val")
    assert str(DataSource.parse(f"{name}@val")) == f"{name}@val" and DataSource.parse(f"{name}@val").names() == ["b"]
    with pytest.raises(ValueError, match="share 1 pictures"):
        choose_splits(f"{name}@trainval", f"{name}@val")
    with pytest.raises(ValueError, match="no split 'valid'; there are test, train, trainval, val"):
        DataSource.parse(f"{name}@valid")


def test_no_choice_is_an_error(tmp_path):
    write_voc(tmp_path, {"a": [], "b": []}, {"trainval": ["a", "b"], "val": ["b"]})
    with pytest.raises(ValueError, match=r"no split of \['trainval', 'val'\] can be trainval or train; name one"):
        choose_splits(f"voc:{tmp_path}")


def test_two_sources_are_taken_whole(tmp_path):
    one = write_coco(tmp_path / "train.json", {"a.jpg": []})
    two = write_coco(tmp_path / "val.json", {"b.jpg": []})
    folder = write_voc(tmp_path / "voc", {"a": [], "b": []})
    assert splits_of(f"coco:{one}", f"coco:{two}") == ("all", "all")
    assert splits_of(f"coco:{one}", f"voc:{folder}") == ("all", "all")


def test_a_bare_path_tells_its_kind(tmp_path):
    folder = write_voc(tmp_path / "a@b", {"a": []}, {"train": ["a"]})
    assert DataSource.parse(str(folder)) == DataSource("voc", folder)
    assert DataSource.parse(f"{folder}@train").split == "train"
    file = write_coco(tmp_path / "train.json", {"a.jpg": []})
    flat = write_yolo(tmp_path / "flat", {"images/a.jpg": ["0 0.5 0.5 0.1 0.1"]})
    described = write_yolo(tmp_path / "described", {"images/train/a.jpg": None}, {"data.yaml": "names: [dog]"})
    exported = write_yolo(tmp_path / "exported", {"train/images/a.jpg": []})
    assert [DataSource.parse(f"{path}").kind for path in (flat, described, exported)] == ["yolo"] * 3
    assert DataSource.parse(f"{flat}@all") == DataSource("yolo", flat, "all")
    assert DataSource.parse(str(file)).kind == "coco" and DataSource.parse(f"coco:{file}@all").split == "all"


@pytest.mark.parametrize(
    ("name", "words"), [("mnist", "must be 'digits', 'voc:DIR', 'yolo:DIR'"), ("coco:", "no such file")]
)
def test_names_that_mean_nothing(name, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        DataSource.parse(name)


def test_every_format_holds_out_the_same_pictures_a_fifth_of_them():
    """Their names there: of VOC without an ending, of COCO with one, of YOLO with the folder, too."""
    names = [f"{k:03}" for k in range(30)]
    forms = "{}", "{}.jpg", "images/{}.jpg"
    held = [hold_out(form.format(name) for name in names)["test"] for form in forms]
    assert [len(names) for names in held] == [6, 6, 6]
    assert held == [[form.format(name) for name in held[0]] for form in forms]
    assert [len(hold_out(names[:count])["test"]) for count in (0, 1, 2, 7, 8)] == [0, 0, 1, 1, 2]
