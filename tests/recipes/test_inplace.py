"""The helper that names the line of an in-place write: right line, right tensor, silent when nothing is wrong."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from frcnn_lite.recipes.inplace import InPlaceError, name_inplace_writes, versions


def batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 4, 4, generator=generator).requires_grad_()
    return logits, torch.randint(3, (2, 4, 4), generator=generator)


def picked(logits, target):
    target.unsqueeze_(1)  # the guilty line
    return logits.softmax(1).gather(1, target).mean()


def two_losses(logits, target):
    return F.cross_entropy(logits, target) + picked(logits, target)


def caught(run):
    with pytest.raises(InPlaceError) as error, name_inplace_writes():
        run()
    return error.value


def test_names_the_line_that_wrote():
    error = caught(lambda: two_losses(*batch()).backward())
    (write,) = error.writes
    assert write.line.code == "target.unsqueeze_(1)  # the guilty line"
    assert (write.line.function, write.operator) == ("picked", "aten.unsqueeze_.default")
    assert "return F.cross_entropy(logits, target)" in str(error)
    assert "version 1, and was saved at version 0" in str(error)


def test_finds_what_torch_finds_and_agrees_where_nothing_is_wrong():
    logits, target = batch()
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        two_losses(logits, target).backward()
    plain, target = batch()
    F.cross_entropy(plain, target).backward()
    watched, target = batch()
    with name_inplace_writes() as writes:
        F.cross_entropy(watched, target).backward()
    assert torch.equal(plain.grad, watched.grad)
    assert all(write.line.function != "picked" for write in writes)


def test_view_shares_the_version_of_its_base():
    def run():
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        z = (y * y).sum()
        y[1:].zero_()
        z.backward()

    (write,) = caught(run).writes
    assert write.line.code == "y[1:].zero_()"


def test_step_between_two_backwards():
    def run():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.ones(2, 3)).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()

    assert caught(run).writes[0].line.code == "optimizer.step()"


def test_many_writes_are_counted():
    def run():
        y = torch.ones(3, requires_grad=True) * 2
        z = (y * y).sum()
        for _ in range(10):
            y.add_(1)
        z.backward()

    error = caught(run)
    assert len(error.writes) == 10
    assert "and 7 more" in str(error)


def test_write_outside_the_block_is_admitted():
    y = torch.ones(3, requires_grad=True) * 2
    with name_inplace_writes():
        z = (y * y).sum()
    y.add_(1)
    with pytest.raises(InPlaceError, match="did not see"):
        z.backward()


def test_writes_before_saving_and_after_backward_are_innocent():
    x = torch.ones(3, requires_grad=True)
    with name_inplace_writes() as writes:
        y = x * 2
        y.add_(1)
        (y * y).sum().backward()
        y.zero_()
    assert [write.line.code for write in writes if write.operator != "aten.detach_.default"] == [
        "y.add_(1)",
        "y.zero_()",
    ]
    assert torch.equal(x.grad, torch.full((3,), 12.0))


def test_versions_in_words():
    target = torch.zeros(2, 4, dtype=torch.int64)
    target.unsqueeze_(1)
    assert versions({"target": target}) == "target: torch.int64 (2, 1, 4), version 1"
