import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from frcnn_lite.data import DigitScenes, collate, load_photographs
from frcnn_lite.data.scenes import MAX_OVERLAP, _overlap


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a[:3], b[:3], strict=True)) and a.image_id == b.image_id


def test_shapes_dtypes_and_ranges():
    dataset = DigitScenes("train", 50, seed=3)
    assert len(dataset) == 50 and dataset.num_classes == len(dataset.class_names)
    for scene in dataset:
        count = len(scene.labels)
        assert scene.image.dtype == torch.uint8 and scene.image.shape == (3, 128, 128)
        assert scene.boxes.dtype == torch.float32 and scene.boxes.shape == (count, 4)
        assert scene.labels.dtype == torch.int64 and 0 < count <= 6
        assert (scene.boxes[:, :2] >= 0).all() and (scene.boxes[:, 2:] <= 128).all()
        assert (scene.boxes[:, 2:] - scene.boxes[:, :2] >= 5).all()
        assert (scene.labels >= 0).all() and (scene.labels < 10).all()


def test_a_scene_depends_on_seed_split_and_index_alone():
    scene = DigitScenes("train", 10, seed=1)[7]
    np.random.seed(0)
    torch.manual_seed(0)
    longer = DigitScenes("train", 1000, seed=1)
    longer[3]
    assert same(scene, longer[7])
    for other in (longer[8], DigitScenes("train", 10, seed=2)[7], DigitScenes("test", 10, seed=1)[7]):
        assert not torch.equal(scene.image, other.image)


def test_global_generators_are_left_alone():
    np.random.seed(5)
    torch.manual_seed(5)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    DigitScenes("train", 3)[0]
    assert torch.equal(state, torch.get_rng_state()) and np.array_equal(numpy_state, np.random.get_state()[1])


def test_scene_zero_is_the_same_everywhere():
    scene = DigitScenes("train", 1)[0]
    assert scene.labels.tolist() == [1, 4, 6, 9, 2]
    assert scene.boxes.tolist() == [
        [88.0, 0.0, 109.0, 36.0],
        [14.0, 66.0, 36.0, 103.0],
        [32.0, 13.0, 64.0, 55.0],
        [68.0, 95.0, 86.0, 128.0],
        [99.0, 84.0, 116.0, 110.0],
    ]
    # JPEG decoders may differ by a grey level, so the picture is held by the means of its quarters and not by a hash.
    quarters = scene.image.reshape(3, 2, 64, 2, 64).to(torch.float64).mean(dim=(0, 2, 4))
    torch.testing.assert_close(
        quarters, torch.tensor([[126.48, 126.62], [127.82, 128.94]], dtype=torch.float64), atol=0.5, rtol=0
    )


def test_ink_can_be_told_from_the_photograph_and_fills_its_box():
    """Against the same scene without digits, what changed lies inside the boxes and reaches every side of one alone."""
    checked = 0
    for index in range(30):
        scene = DigitScenes("test", 30, digits=(1, 1))[index]
        empty = DigitScenes("test", 30, digits=(0, 0))[index]
        assert len(empty.labels) == 0 and empty.boxes.shape == (0, 4)
        changed = (scene.image.int() - empty.image.int()).abs().amax(dim=0) > 12
        rows, columns = torch.where(changed.any(1))[0], torch.where(changed.any(0))[0]
        extent = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
        checked += (torch.tensor(extent) - scene.boxes[0]).abs().max() <= 1
        assert (torch.tensor(extent[:2]) >= scene.boxes[0, :2]).all()
        assert (torch.tensor(extent[2:]) <= scene.boxes[0, 2:]).all()
    assert checked >= 28  # where ink happens to have the colour under it, a side may not show


def test_digits_overlap_at_times_but_never_hide_each_other():
    overlaps = []
    for scene in DigitScenes("train", 100, digits=(6, 6)):
        boxes = [tuple(box) for box in scene.boxes.tolist()]
        overlaps += [_overlap(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    assert max(overlaps) <= MAX_OVERLAP
    assert sum(overlap > 0.02 for overlap in overlaps) > 20


def test_all_ten_labels_come_up():
    labels = torch.cat([scene.labels for scene in DigitScenes("test", 60)])
    assert set(labels.tolist()) == set(range(10))


def test_train_and_test_see_different_parts_of_the_photographs():
    for train, test in zip(load_photographs("train"), load_photographs("test"), strict=True):
        assert train.shape[2] + test.shape[2] == 640 and train.shape[1] == test.shape[1]


def test_pickle_carries_no_pixels():
    dataset = DigitScenes("train", 1_000_000)
    dataset[0]  # loads the digits into this process
    data = pickle.dumps(dataset)
    assert len(data) < 500
    assert same(pickle.loads(data)[4], dataset[4])


@pytest.mark.parametrize("context", ["spawn"])
def test_workers_deliver_the_same_scenes(context):
    dataset = DigitScenes("train", 6)
    loader = DataLoader(dataset, batch_size=3, num_workers=1, multiprocessing_context=context, collate_fn=collate)
    batches = list(loader)
    expected = [collate([dataset[i] for i in range(3)]), collate([dataset[i] for i in range(3, 6)])]
    for got, wanted in zip(batches, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"split": "val", "length": 1}, ValueError, "`split` must be 'train' or 'test', got 'val'"),
        ({"split": "train", "length": -1}, ValueError, "`length` must be at least 0, got -1"),
        ({"split": "train", "length": 1.5}, TypeError, "`length` must be an int, got 1.5"),
        ({"split": "train", "length": 1, "seed": -2}, ValueError, "`seed` must be at least 0"),
        ({"split": "train", "length": 1, "size": 32}, ValueError, "`size` must be at least 64, got 32"),
        ({"split": "train", "length": 1, "size": 500}, ValueError, "`size` must be at most 214"),
        ({"split": "train", "length": 1, "digits": (3, 2)}, ValueError, "`digits` must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        DigitScenes(**arguments)


@pytest.mark.parametrize("index", [-1, 5])
def test_index_beyond_the_length(index):
    with pytest.raises(IndexError, match="0 to 4"):
        DigitScenes("train", 5)[index]
