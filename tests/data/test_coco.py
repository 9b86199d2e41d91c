import json

import pytest
from annotated_folders import write_coco

from frcnn_lite.data.coco import coco_class_names, coco_splits, read_coco


def test_boxes_crowds_and_categories(tmp_path):
    crowd = {"bbox": [0, 0, 64, 48], "category_id": 14, "iscrowd": 1}
    file = write_coco(tmp_path / "a.json", {"x.jpg": [{"bbox": [1.5, 2, 10, 20], "category_id": 7}, crowd]})
    assert coco_class_names(file, []) == ("dog", "cat")
    (picture,), defects = read_coco(file, ["x.jpg"])
    dog, cats = picture.objects
    assert picture.file == tmp_path / "images" / "x.jpg" and picture.size == (64, 48) and defects == []
    assert (dog.box, dog.name, dog.ignored) == ((1.5, 2, 11.5, 22), "dog", False)
    assert (cats.name, cats.ignored, cats.crowd) == ("cat", True, True)


def test_the_file_is_one_split_and_can_be_two(tmp_path):
    splits = coco_splits(write_coco(tmp_path / "a.json", {f"{k}.jpg": [] for k in range(40)}))
    assert sorted(splits["train"] + splits["test"]) == splits["all"] and 2 <= len(splits["test"]) <= 16


def test_images_are_found_where_coco_puts_them(tmp_path):
    file = write_coco(tmp_path / "instances_val2017.json", {"x.jpg": []})
    (tmp_path / "annotations").mkdir()
    (tmp_path / "images").rename(tmp_path / "val2017")
    file = file.rename(tmp_path / "annotations" / file.name)
    (picture,), _ = read_coco(file, ["x.jpg"])
    assert picture.file.resolve() == (tmp_path / "val2017" / "x.jpg").resolve()


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ({"category_id": 7}, "must be four numbers, got None"),
        ({"bbox": [1, 2, 3], "category_id": 7}, "must be four numbers"),
        ({"bbox": [1, 2, None, 4], "category_id": 7}, "a number of the bbox is not a number: None"),
    ],
)
def test_a_wrong_entry_is_reported_and_the_others_are_read(tmp_path, annotation, words):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [annotation], "y.jpg": []})
    pictures, (defect,) = read_coco(file, ["x.jpg", "y.jpg"])
    assert [picture.file.name for picture in pictures] == ["y.jpg"]
    assert defect.file == "a.json: x.jpg" and words in defect.detail


def test_an_unknown_category_and_a_path_that_leads_out(tmp_path):
    file = write_coco(tmp_path / "a.json", {"x.jpg": [{"bbox": [1, 2, 3, 4], "category_id": 99}]})
    content = json.loads(file.read_text())
    content["images"].append({"id": 1, "file_name": "../../etc/passwd"})
    file.write_text(json.dumps(content))
    (picture,), (defect,) = read_coco(file, ["x.jpg", "../../etc/passwd"])
    assert picture.objects[0].name == "category 99" and "leads out of" in defect.detail


@pytest.mark.parametrize("text", ["{", "[]", '{"images": []}', '{"images": [1], "annotations": [], "categories": []}'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json .*COCO annotations"):
        coco_splits(tmp_path / "a.json")
