import warnings
from dataclasses import replace

import pytest
import torch
from annotated_folders import write_voc

from frcnn_lite.data import collate
from frcnn_lite.engine import Pictures, TrainConfig, Trainer, datasets, resolve


def test_digits_are_opened_by_name():
    dataset = Pictures().held_out(TrainConfig(image_size=96), 5)
    assert len(dataset) == 5 and dataset[0].image.shape == (3, 96, 96)


def test_every_run_is_judged_on_the_same_pictures():
    one, two = TrainConfig(seed=1), TrainConfig(seed=2)
    assert torch.equal(Pictures().held_out(one)[3].image, Pictures().held_out(two, length=4)[3].image)
    assert len(Pictures().held_out(one)) == one.test_images and len(Pictures().held_out(two, length=4)) == 4
    assert not torch.equal(Pictures().train(one)[3].image, Pictures().train(two)[3].image)


@pytest.mark.parametrize("name", ["mnist", "", "voc:", "voc:/nowhere", "coco:/nowhere.json"])
def test_unknown_names_and_missing_directories(name):
    for call in (Pictures().train, Pictures().held_out, lambda config: resolve(data=config.data)):
        with pytest.raises((ValueError, FileNotFoundError), match=f"'{name}'"):
            call(TrainConfig(data=name))


@pytest.fixture
def folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (11, 11, 30, 30), True)] for name in "abcdef"}
    pictures["d"] = [("cat", (1, 1, 20, 20)), ("dog", (60, 5, 60, 5))]
    return write_voc(tmp_path / "voc", pictures, {"train": list("abcd"), "val": list("ef")})


def test_a_folder_is_opened_as_its_configuration_says(folder):
    with pytest.warns(UserWarning, match="has defects"):
        config = resolve(data=f"voc:{folder}")
    with pytest.warns(UserWarning, match="has defects"):
        scenes = Pictures().train(config)
    assert len(scenes) == 4 and scenes[3].image.shape == (3, 64, 96)
    assert scenes[3].boxes.tolist() == [[0, 0, pytest.approx(20 * 85 / 64), pytest.approx(20 * 64 / 48)]]
    assert len(Pictures().held_out(config)) == 2 and Pictures().held_out(config, 1)[0].ignored.labels.tolist() == [0]


def test_flips_are_a_function_of_the_step(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = resolve(data=f"voc:{folder}", batch_size=4, steps=3, warmup_steps=0)
        scenes = Pictures().train(config)
    batch = collate([scenes[k] for k in range(4)])
    one, two = Trainer(config), Trainer(config)
    one.take_step(batch)
    two.restore(one.state())
    assert one.take_step(batch) == two.take_step(batch)


@pytest.mark.filterwarnings("ignore:.*has defects")
def test_workers_and_ranks_share_the_memory_for_finished_pictures(folder, monkeypatch):
    config = resolve(data=f"voc:{folder}", image_size=64, test_images=0)

    def kept(pictures):
        return sum(pictures[k] is pictures[k] for k in range(len(pictures)))

    monkeypatch.setattr(datasets, "KEEP_BYTES", 4 * 3 * 64 * 64)
    # A share for each worker, and one for the process itself, which judges.
    assert [kept(Pictures().train(replace(config, workers=n))) for n in (0, 1, 2, 3)] == [4, 2, 1, 1]
    pictures = Pictures()
    assert kept(pictures.train(config)) + kept(pictures.held_out(config, 2)) == 4, "one process, one share"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert [kept(Pictures().train(replace(config, workers=n))) for n in (0, 1)] == [2, 1]


def test_pictures_that_are_empty_on_purpose_are_one_line(tmp_path):
    pictures = {"a": [("dog", (9, 9, 40, 40))], "b": [], "c": [("dog", (9, 9, 40, 40))]}
    folder = write_voc(tmp_path / "voc", pictures, {"train": ["a", "b"], "val": ["c"]})
    with pytest.warns(UserWarning, match="1 of 2 pictures have no objects, and are background$"):
        resolve(data=f"voc:{folder}")
    with pytest.warns(UserWarning, match="has defects\nempty: 1"):
        resolve(data=f"voc:{folder}", handle=("empty=skip",))
