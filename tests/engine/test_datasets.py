import pytest
import torch

from frcnn_lite.engine import TrainConfig, held_out_pictures, open_dataset, train_pictures


def test_digits_are_opened_by_name():
    dataset = open_dataset("digits", "test", 5, seed=3, size=96)
    assert len(dataset) == 5 and dataset[0].image.shape == (3, 96, 96)


def test_every_run_is_judged_on_the_same_pictures():
    one, two = TrainConfig(seed=1), TrainConfig(seed=2)
    assert torch.equal(held_out_pictures(one)[3].image, held_out_pictures(two, length=4)[3].image)
    assert len(held_out_pictures(one)) == one.test_images and len(held_out_pictures(two, length=4)) == 4
    assert not torch.equal(train_pictures(one)[3].image, train_pictures(two)[3].image)


@pytest.mark.parametrize("name", ["mnist", "", "voc:"])
def test_unknown_names_and_missing_directories(name):
    with pytest.raises((ValueError, FileNotFoundError), match=f"'{name}'"):
        open_dataset(name, "train", 1, seed=0, size=128)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or directory"):
        open_dataset(f"voc:{tmp_path / 'VOC2007'}", "train", 1, seed=0, size=128)
    with pytest.raises(ValueError, match="cannot be read yet"):
        open_dataset(f"voc:{tmp_path}", "train", 1, seed=0, size=128)
