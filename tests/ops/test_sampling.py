import torch
from torch import Tensor

from frcnn_lite.ops.sampling import IGNORED, Sample, gather_rows, sample

BACKGROUND = -1


def draw(
    positives: int, negatives: int, ignored: int, size: int, fraction: float, images: int = 1
) -> tuple[Sample, Tensor]:
    """A sample from candidates of which the first are positive and the next background; and what each is matched to."""
    matched = torch.tensor([0] * positives + [BACKGROUND] * negatives + [IGNORED] * ignored).expand(images, -1)
    keys = torch.rand(matched.shape, generator=torch.Generator().manual_seed(0))
    return sample(matched, keys, size, fraction), matched


def counts(drawn: Sample, matched: Tensor) -> list[int]:
    assert torch.equal(drawn.matched, matched.gather(1, drawn.indices))
    taken = drawn.matched[drawn.weights > 0]
    return [int((taken == kind).sum()) for kind in (0, BACKGROUND, IGNORED)]


def test_takes_its_share_of_positives_and_fills_up_with_negatives() -> None:
    assert counts(*draw(30, 50, 20, size=16, fraction=0.25)) == [4, 12, 0]


def test_few_positives_leave_room_for_negatives() -> None:
    assert counts(*draw(2, 50, 20, size=16, fraction=0.5)) == [2, 14, 0]


def test_few_negatives_leave_slots_of_weight_zero() -> None:
    drawn, matched = draw(30, 3, 20, size=16, fraction=0.5)
    assert counts(drawn, matched) == [8, 3, 0] and drawn.indices.shape == (1, 16)


def test_nothing_to_draw_and_fewer_candidates_than_slots() -> None:
    assert counts(*draw(0, 0, 5, size=8, fraction=0.5)) == [0, 0, 0]
    assert counts(*draw(1, 2, 0, size=8, fraction=0.5)) == [1, 2, 0]


def test_none_is_drawn_twice_and_all_are_drawn_equally_often() -> None:
    drawn, _ = draw(20, 40, 10, size=16, fraction=0.5, images=4000)
    assert (drawn.indices.sort(dim=1).values.diff(dim=1) > 0).all()
    frequency = torch.zeros(70).scatter_add_(0, drawn.indices.flatten(), torch.ones(drawn.indices.numel())) / 4000
    assert (frequency[:20] - 8 / 20).abs().max() < 0.04  # five standard deviations of a proportion over 4000 draws
    assert (frequency[20:60] - 8 / 40).abs().max() < 0.04
    assert not frequency[60:].any()


def test_gather_rows() -> None:
    values = torch.arange(12).view(2, 3, 2)
    assert gather_rows(values, torch.tensor([[2, 0], [1, 1]])).tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]
