import pytest
import torch

from course.learn.voc_folder import plant_faults, write_voc
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


def test_every_planted_fault_is_one_that_the_reader_reports(tmp_path):
    planted = plant_faults(tmp_path, write_voc(tmp_path, SCENES))
    kinds = {defect.file.rpartition("/")[2].partition(".")[0]: defect.kind for defect in read(tmp_path).defects}
    assert kinds.keys() == planted.keys()
    assert sorted(kinds.values()) == sorted(
        ["unreadable", "no_area", "no_area", "outside", "unknown_class", "other_size", "empty"]
    )


def test_seven_faults_need_seven_pictures(tmp_path):
    with pytest.raises(ValueError, match="names must hold at least 7, got 3"):
        plant_faults(tmp_path, ["a", "b", "c"])
