import pytest
import torch

from frcnn_lite.data import PADDING_LABEL, Scene, collate


def scene(count, image_id=0, size=8):
    return Scene(
        torch.full((3, size, size), 51, dtype=torch.uint8),
        torch.arange(count * 4, dtype=torch.float32).reshape(count, 4),
        torch.arange(count),
        image_id,
    )


def test_boxes_and_labels_are_padded_to_the_longest():
    batch = collate([scene(2, 10), scene(0, 11), scene(3, 12)])
    assert batch.images.shape == (3, 3, 8, 8) and batch.images.dtype == torch.float32
    torch.testing.assert_close(batch.images.unique(), torch.tensor([0.2]))
    assert batch.boxes.shape == (3, 3, 4) and batch.boxes.dtype == torch.float32
    assert batch.labels.tolist() == [[0, 1, PADDING_LABEL], [PADDING_LABEL] * 3, [0, 1, 2]]
    assert batch.boxes[1].abs().sum() == 0 and torch.equal(batch.boxes[2], scene(3).boxes)
    assert batch.image_ids.tolist() == [10, 11, 12]


def test_a_fixed_length_can_be_asked_for():
    assert collate([scene(2)], max_boxes=5).boxes.shape == (1, 5, 4)
    assert collate([scene(0)]).boxes.shape == (1, 1, 4)


def test_no_box_is_dropped_silently():
    with pytest.raises(ValueError, match="`max_boxes` must be at least 3, the boxes of a scene, or None, got 2"):
        collate([scene(1), scene(3)], max_boxes=2)


def test_unequal_sizes_and_nothing_are_refused():
    with pytest.raises(ValueError, match="one image size"):
        collate([scene(1), scene(1, size=9)])
    with pytest.raises(ValueError, match="at least one Scene"):
        collate([])


def test_to_moves_every_tensor():
    batch = collate([scene(1)]).to("meta")
    assert {tensor.device.type for tensor in batch} == {"meta"}
