import pytest
import torch

from frcnn_lite.parallel.reduce_loss import reduce_loss


def test_divides_the_whole_sum_by_the_whole_count_once() -> None:
    sums, counts = {"box": torch.tensor([4.0, 0.0, 5.0])}, {"box": torch.tensor([1.0, 0.0, 2.0])}
    losses = reduce_loss(sums, counts)
    assert losses["box"].item() == 3.0 and losses["box"].dim() == 0


def test_is_not_the_mean_of_the_means_of_uneven_chunks() -> None:
    sums, counts = torch.arange(9.0), torch.ones(9)
    chunks = [reduce_loss(s, c).item() for s, c in zip(sums.chunk(2), counts.chunk(2), strict=True)]
    assert reduce_loss(sums, counts).item() == 4.0
    assert sum(chunks) / 2 == 4.25


def test_nothing_counted_is_zero_with_a_gradient() -> None:
    parameter = torch.ones(2, requires_grad=True)
    loss = reduce_loss(parameter * 0, torch.zeros(2))
    loss.backward()
    assert loss.item() == 0.0 and parameter.grad is not None and not parameter.grad.any()


def test_any_pytree() -> None:
    losses = reduce_loss([torch.ones(3), {"a": (torch.ones(2),)}], [torch.ones(3), {"a": (torch.tensor([4, 0]),)}])
    assert losses[0].item() == 1.0 and losses[1]["a"][0].item() == 0.5


def test_different_structures_are_refused() -> None:
    with pytest.raises(ValueError):
        reduce_loss({"a": torch.ones(2)}, {"b": torch.ones(2)})
