from pathlib import Path

import pytest
import torch

from course.lessons.nb22.voc_folder import add, edit, plant_faults, remove, rename, rescale, write_voc
from frcnn_lite.data import AnnotatedPictures, DataSource, DigitScenes

SCENES = DigitScenes("train", 8, size=64)


def read(folder):
    pictures, defects = DataSource.parse(f"voc:{folder}").read()
    return AnnotatedPictures(pictures, SCENES.class_names, defects=defects)


def test_scenes_come_back_as_they_were_written(tmp_path):
    names = write_voc(tmp_path, SCENES)
    found = read(tmp_path)
    assert found.defects == () and len(found) == len(names) == 8
    for index in range(8):
        assert torch.equal(found[index].image, SCENES[index].image)
        assert torch.equal(found[index].boxes, SCENES[index].boxes.round())
        assert torch.equal(found[index].labels, SCENES[index].labels)


def written(folder):
    """The pictures by name, as their annotations are."""
    return {Path(picture.source).stem: picture for picture in DataSource.parse(f"voc:{folder}").read()[0]}


def test_every_planted_fault_is_one_that_the_reader_reports(tmp_path):
    planted = plant_faults(tmp_path, write_voc(tmp_path, SCENES)[:7])
    kinds = {defect.file.rpartition("/")[2].partition(".")[0]: defect.kind for defect in read(tmp_path).defects}
    assert kinds.keys() == planted.keys()
    assert sorted(kinds.values()) == sorted(
        ["unreadable", "no_area", "no_area", "outside", "unknown_class", "other_size", "empty"]
    )


def test_seven_faults_need_seven_pictures(tmp_path):
    with pytest.raises(ValueError, match="`names` must be 7, one for each fault, got 3"):
        plant_faults(tmp_path, ["a", "b", "c"])


def test_an_edit_changes_one_object(tmp_path):
    write_voc(tmp_path, SCENES)
    before = written(tmp_path)["0001"].objects
    edit(tmp_path, "0001", 1, name="7", xmax=60)
    after = written(tmp_path)["0001"].objects
    assert after[1].name == "7" and after[1].box == (*before[1].box[:2], 60, before[1].box[3])
    assert after[:1] + after[2:] == before[:1] + before[2:]
    with pytest.raises(KeyError, match="zmax"):
        edit(tmp_path, "0001", 0, zmax=3)
    with pytest.raises(IndexError):
        edit(tmp_path, "0001", 99, xmax=3)


def test_an_added_object_is_counted_as_voc_does(tmp_path):
    write_voc(tmp_path, SCENES)
    before = written(tmp_path)["0002"].objects
    add(tmp_path, "0002", "5", (1, 1, 1, 4))
    *others, last = written(tmp_path)["0002"].objects
    assert tuple(others) == before and last.name == "5" and last.box[1:] == (0, 1, 4)


def test_boxes_come_back_from_half_their_size_to_a_pixel(tmp_path):
    write_voc(tmp_path, SCENES)
    before = written(tmp_path)["0003"]
    rescale(tmp_path, "0003", 0.5)
    half = written(tmp_path)["0003"]
    assert half.size == (32, 32) and max(edge for thing in half.objects for edge in thing.box) <= 32
    rescale(tmp_path, "0003", 2)
    after = written(tmp_path)["0003"]
    assert after.size == before.size == (64, 64)
    for one, other in zip(before.objects, after.objects, strict=True):
        assert one.name == other.name and max(abs(a - b) for a, b in zip(one.box, other.box, strict=True)) <= 1


def test_what_is_removed_is_gone(tmp_path):
    write_voc(tmp_path, SCENES)
    remove(tmp_path, "0004")
    assert written(tmp_path).keys() == {f"000{k}" for k in (0, 1, 2, 3, 5, 6, 7)} and len(read(tmp_path)) == 7


def test_digits_are_called_by_words(tmp_path):
    write_voc(tmp_path, SCENES)
    before = written(tmp_path)
    rename(tmp_path, [f"digit {k}" for k in range(10)])
    for name, picture in written(tmp_path).items():
        assert [thing.name for thing in picture.objects] == [f"digit {thing.name}" for thing in before[name].objects]
