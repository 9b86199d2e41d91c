"""What ranks tell each other: two ranks on the CPU, and a process that is alone."""

import pytest
import torch
from torch import distributed, nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.parallel.collectives import (
    any_rank,
    from_main_rank,
    merge_rows,
    reduce_loss_over_ranks,
    rows_of_rank,
    sum_over_ranks,
)

ROWS = 5  # three for rank 0, two for rank 1


def talk():
    """Each function once, in both ranks."""
    rank = distributed.get_rank()
    net, losses = train(DistributedDataParallel, list(rows_of_rank(ROWS)))
    said = {
        "sum": sum_over_ranks(torch.tensor([rank, 1.0])).tolist(),
        "any": (any_rank(rank == 1), any_rank(False)),
        "merged": merge_rows([f"{row} by {rank}" for row in rows_of_rank(ROWS)]),
        "from main": from_main_rank(lambda: f"made by {rank}"),
        "gradient": net.weight.grad,
        "losses": losses,
    }
    try:
        from_main_rank(refuse)
    except FileExistsError as error:
        said["error"] = str(error)
    return said


def train(wrap, rows):
    """The backward of one step over `rows`, each row an image with as many objects as its number says."""
    torch.manual_seed(0)
    net = nn.Linear(3, 1).double()
    wrapped = wrap(net)  # it has to live until after the backward
    x = torch.arange(ROWS * 3, dtype=torch.float64).view(ROWS, 3)[rows]
    counts = torch.tensor(rows)
    sums = counts * mse_loss(wrapped(x), x[:, :1], reduction="none").sum(1)
    own, total = reduce_loss_over_ranks({"box": sums}, {"box": counts})
    own["box"].backward()
    return net, (own["box"].item(), total["box"].item())


def refuse():
    raise FileExistsError("there is a run already")


@pytest.fixture(scope="module")
def said():
    """What rank 0 and rank 1 said."""
    vgpu = pytest.importorskip("vgpu", reason="it needs vgpu, whose ranks are threads of one process")
    with vgpu.virtual_gpus(2, force=True):
        return vgpu.ranks(2, backend="gloo")(talk)()


def test_each_rank_hears_the_same(said):
    for one in said:
        assert one["sum"] == [1.0, 2.0] and one["any"] == (True, False)
        assert one["merged"] == ["0 by 0", "1 by 1", "2 by 0", "3 by 1", "4 by 0"]
        assert one["from main"] == "made by 0"


def test_an_error_on_rank_zero_is_raised_on_all(said):
    assert [one["error"] for one in said] == ["there is a run already"] * 2


def test_gradients_and_losses_are_those_of_one_process_with_all_rows(said):
    net, (_, loss) = train(lambda net: net, list(range(ROWS)))
    for one in said:
        torch.testing.assert_close(one["gradient"], net.weight.grad, rtol=1e-10, atol=0)
        assert one["losses"][1] == pytest.approx(loss, rel=1e-10)
    assert sum(one["losses"][0] for one in said) / 2 == pytest.approx(loss, rel=1e-10)
    assert said[0]["losses"][0] != pytest.approx(said[1]["losses"][0], rel=1e-3)


def test_alone_the_answer_is_the_question():
    x = torch.tensor([2.0], requires_grad=True)
    assert sum_over_ranks(x).tolist() == [2.0] and not sum_over_ranks(x).requires_grad
    assert any_rank(True) and not any_rank(False)
    assert list(rows_of_rank(3)) == [0, 1, 2] and merge_rows(["a", "b"]) == ["a", "b"]
    assert from_main_rank(lambda: "made") == "made"
    own, total = reduce_loss_over_ranks(torch.tensor([4.0, 0.0, 5.0]), torch.tensor([1.0, 0.0, 2.0]))
    assert own.item() == total.item() == 3.0


def test_nothing_counted_is_zero():
    own, total = reduce_loss_over_ranks(torch.zeros(2), torch.zeros(2))
    assert own.item() == total.item() == 0.0
