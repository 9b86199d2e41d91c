import json
import warnings
from dataclasses import replace

import pytest
import torch
from annotated_folders import write_coco, write_voc

from frcnn_lite.data import collate
from frcnn_lite.engine import TrainConfig, Trainer, datasets, fit_to_data, held_out_pictures, train_pictures


def test_digits_are_opened_by_name():
    dataset = held_out_pictures(TrainConfig(image_size=96), 5)
    assert len(dataset) == 5 and dataset[0].image.shape == (3, 96, 96)
    assert fit_to_data(TrainConfig()) == TrainConfig()


def test_every_run_is_judged_on_the_same_pictures():
    one, two = TrainConfig(seed=1), TrainConfig(seed=2)
    assert torch.equal(held_out_pictures(one)[3].image, held_out_pictures(two, length=4)[3].image)
    assert len(held_out_pictures(one)) == one.test_images and len(held_out_pictures(two, length=4)) == 4
    assert not torch.equal(train_pictures(one)[3].image, train_pictures(two)[3].image)


@pytest.mark.parametrize("name", ["mnist", "", "voc:", "voc:/nowhere", "coco:/nowhere.json"])
def test_unknown_names_and_missing_directories(name):
    for call in (train_pictures, held_out_pictures, fit_to_data):
        with pytest.raises((ValueError, FileNotFoundError), match=f"'{name}'"):
            call(TrainConfig(data=name))


@pytest.fixture
def folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (11, 11, 30, 30), True)] for name in "abcdef"}
    pictures["d"] = [("cat", (1, 1, 20, 20)), ("dog", (60, 5, 60, 5))]
    return write_voc(tmp_path / "voc", pictures, {"train": list("abcd"), "val": list("ef")})


def test_what_follows_from_a_folder(folder):
    with pytest.warns(UserWarning, match=r"no_area: 1\n  Annotations/d.xml"):
        config = fit_to_data(TrainConfig(data=f"voc:{folder}", train_images=4))
    assert (config.data, config.test_data) == (f"voc:{folder}@train", f"voc:{folder}@val")
    assert config.class_names == ("cat", "dog") and config.model.num_classes == 2
    assert (config.train_images, config.test_images, config.flip) == (4, 2, 0.5)
    assert config.image_size == (64, 96)
    assert config.model.anchor_sizes == pytest.approx((26.7, 42.7), abs=0.2) and config.model.anchor_ratios == (1.0,)
    again = TrainConfig.from_json(config.to_json())
    assert again == config and json.loads(config.to_json())["class_names"] == ["cat", "dog"]
    with pytest.warns(UserWarning, match="has defects"):
        scenes = train_pictures(config)
    assert len(scenes) == 4 and scenes[3].image.shape == (3, 64, 96)
    assert scenes[3].boxes.tolist() == [[0, 0, pytest.approx(20 * 85 / 64), pytest.approx(20 * 64 / 48)]]
    assert len(held_out_pictures(config)) == 2 and held_out_pictures(config, 1)[0].ignored.labels.tolist() == [0]


def test_a_chosen_size_and_handling_stay(folder):
    config = TrainConfig(data=f"voc:{folder}", image_size=(48, 64), handle=("no_area=raise",))
    with pytest.raises(ValueError, match="no_area: 1"):
        fit_to_data(config, keep_image_size=True)
    with pytest.warns(UserWarning):
        config = fit_to_data(TrainConfig(data=f"voc:{folder}", image_size=(48, 64)), keep_image_size=True)
    assert config.image_size == (48, 64)


def test_a_file_of_coco(tmp_path):
    box = {"bbox": [8, 8, 32, 32], "category_id": 7}
    forty = [{**box, "bbox": [k / 2, 8, 32, 32]} for k in range(40)]
    one = write_coco(tmp_path / "train.json", {"a.jpg": forty, "b.jpg": [box, {**box, "iscrowd": 1}]})
    two = write_coco(tmp_path / "val.json", {"c.jpg": [box]})
    config = fit_to_data(TrainConfig(data=f"coco:{one}", test_data=f"coco:{two}"))
    assert config.class_names == ("dog", "cat") and (config.train_images, config.test_images) == (2, 1)
    assert config.model.detections >= 80 and config.model.proposals >= 80  # room for all forty, and mistakes
    assert len(train_pictures(config)[1].labels) == 1


def test_pictures_without_boxes_cannot_be_trained_on(tmp_path):
    folder = write_voc(tmp_path, {name: [] for name in "ab"}, {"train": ["a"], "test": ["b"]})
    with warnings.catch_warnings(), pytest.raises(ValueError, match="there is no box to train on in 1 pictures"):
        warnings.simplefilter("ignore")
        fit_to_data(TrainConfig(data=f"voc:{folder}"))


def test_flips_are_a_function_of_the_step(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = fit_to_data(TrainConfig(data=f"voc:{folder}", batch_size=4, steps=3, warmup_steps=0))
        scenes = train_pictures(config)
    batch = collate([scenes[k] for k in range(4)])
    one, two = Trainer(config), Trainer(config)
    one.take_step(batch)
    two.restore(one.state())
    assert one.take_step(batch) == two.take_step(batch)


@pytest.mark.filterwarnings("ignore:.*has defects")
def test_workers_and_ranks_share_the_memory_for_finished_pictures(folder, monkeypatch):
    config = fit_to_data(TrainConfig(data=f"voc:{folder}", image_size=64, test_images=0), keep_image_size=True)

    def kept(pictures):
        return sum(pictures[k] is pictures[k] for k in range(len(pictures)))

    monkeypatch.setattr(datasets, "KEEP_BYTES", 4 * 3 * 64 * 64)
    assert [kept(train_pictures(replace(config, workers=n))) for n in (0, 1, 2, 4)] == [4, 4, 2, 1]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert [kept(train_pictures(replace(config, workers=n))) for n in (0, 1, 2)] == [2, 2, 1]
    assert kept(held_out_pictures(replace(config, workers=4), 8)) == 2  # loaded by the ranks themselves
