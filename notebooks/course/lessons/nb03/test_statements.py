"""Numbers and statements in the prose of notebook 03 that no output shows, computed and run again."""

import pytest
import torch
from told import says

from course.lessons.nb03.puzzles.rank_loss import rank_loss
from course.lessons.nb03.puzzles.row_weights import row_weights
from frcnn_lite import parallel


def test_the_heaviest_row_of_ten():
    heaviest = {gpus: max(row_weights(10, gpus)) * 10 for gpus in range(1, 9)}
    assert heaviest[4] == max(heaviest.values()) == pytest.approx(2.5)
    assert max(row_weights(10, 4)) / min(row_weights(10, 4)) == pytest.approx(3)
    assert says("03", "a row weighs 1 / (replicas that ran · rows on its GPU)")
    assert says("03", "counts three times as much as any other, and 2.5 times as much as is fair")


def test_outputs_that_meet_on_cuda_0():
    assert round(32 * 21 * 512 * 512 * 4 / 1e6) == 705
    assert says("03", "For 32 pictures of 512 x 512, with scores of 21 classes at each pixel, these outputs are 705 MB")


def test_what_cross_entropy_skips_and_what_reduce_loss_divides():
    scores, labels = torch.randn(10, 10), torch.arange(10)
    labels[[1, 2, 6]] = -100
    losses, counts = torch.nn.functional.cross_entropy(scores, labels, reduction="none"), (labels != -100).float()
    assert losses[[1, 2, 6]].tolist() == [0, 0, 0]
    found = parallel.reduce_loss({"class": losses, "none": losses * 0}, {"class": counts, "none": counts * 0})
    torch.testing.assert_close(found["class"], torch.nn.functional.cross_entropy(scores, labels))
    assert found["none"] == 0
    assert says("03", "`-100` is the label that PyTorch's `cross_entropy` skips by default")
    assert says("03", "the same division, for each tensor in two dicts")


def test_what_a_rank_calls_backward_on():
    weight, rows, counts = torch.randn(3, dtype=torch.float64, requires_grad=True), torch.randn(8, 3).double(), [1, 7]
    of_rank = [(rows[:1] @ weight).square().sum(), (rows[1:] @ weight).square().sum()]
    (one_gpu,) = torch.autograd.grad(sum(of_rank) / 8, weight, retain_graph=True)
    losses = [rank_loss(of_rank, counts, rank) for rank in range(2)]
    averaged = torch.stack([torch.autograd.grad(loss, weight)[0] for loss in losses]).mean(0)
    torch.testing.assert_close(averaged, one_gpu, rtol=1e-12, atol=0)
    assert says("03", "DDP averages them: a rank calls `backward` on number of ranks · own sum / count of all")
