import pytest
import torch

from frcnn_lite.engine import TrainConfig
from frcnn_lite.engine.datasets import StepOrder, held_out_pictures, open_dataset, train_pictures


def test_every_image_once_before_any_twice():
    steps = list(StepOrder(images=10, batch_size=4, seed=0, first_step=0, last_step=10))
    flat = [index for batch in steps for index in batch]
    assert all(len(batch) == 4 for batch in steps)
    for epoch in range(4):
        assert sorted(flat[epoch * 10 : (epoch + 1) * 10]) == list(range(10))
    assert flat[:10] != flat[10:20] != list(range(10))


def test_an_order_taken_up_in_the_middle_goes_on_as_it_would_have():
    whole = list(StepOrder(10, 3, seed=5, first_step=0, last_step=9))
    assert list(StepOrder(10, 3, seed=5, first_step=4, last_step=9)) == whole[4:]
    assert list(StepOrder(10, 3, seed=6, first_step=0, last_step=9)) != whole


def test_a_batch_may_be_larger_than_the_data_set():
    (batch,) = StepOrder(images=3, batch_size=7, seed=0, first_step=0, last_step=1)
    assert sorted(batch[:3]) == sorted(batch[3:6]) == [0, 1, 2]


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
