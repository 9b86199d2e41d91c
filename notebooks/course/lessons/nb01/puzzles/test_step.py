"""A test that passes for a right step on several GPUs, and fails for one that loses, doubles, changes or moves rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "`step(images)` and `alone(images)` should be the same tensor. What can be different about them?",
    "Compare the number of rows first, and then the values: a row can come back and be wrong.",
    "`assert len(out) == len(right)`, and then `torch.testing.assert_close(out, right)`.",
)


def test_step(step: Callable[[Tensor], Tensor], alone: Callable[[Tensor], Tensor], images: Tensor) -> None:
    """Fails unless `step`, on several GPUs, returns what `alone` returns on one."""
    out, right = step(images), alone(images)
    assert len(out) == len(right), f"{len(out)} rows came back of {len(right)}"
    torch.testing.assert_close(out, right)


class _Pasted(nn.Module):
    """The images where there is ink, and the paper, if any, elsewhere."""

    def forward(self, images: Any, masks: Any, paper: Any = None) -> Tensor:
        images, masks = (torch.as_tensor(part).cuda() for part in (images, masks))  # arrays become tensors
        return images if paper is None else torch.where(masks, images, torch.as_tensor(paper).cuda())


@dataclass(frozen=True)
class _Program:
    """A step that the reader's test is tried on; `words` say which one it is."""

    words: str
    run: Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
    gpus: int = 2

    def __call__(self, images: Tensor) -> Tensor:
        net = nn.DataParallel(_Pasted(), device_ids=list(range(self.gpus)))
        paper = torch.linspace(2, 9, 64).reshape(1, 1, 8, 8)
        return self.run(net, images, images > 4, paper).cpu()

    def __repr__(self) -> str:
        return f"<{self.words}>"


def _swapped(rows: Tensor) -> Tensor:
    order = torch.arange(len(rows))
    k = (len(rows) - 1) // 2
    order[[k, k + 1]] = order[[k + 1, k]]
    return rows[order.to(rows.device)]


def _spotted(rows: Tensor) -> Tensor:
    rows = rows.clone()
    rows[len(rows) // 2, 0, 4, 4] += 1
    return rows


_ALONE = _Program("the same on one GPU", lambda dp, x, mask, paper: dp(x, mask, paper), gpus=1)
_STEPS = (
    _Program("a right step", lambda dp, x, mask, paper: dp(x, mask, paper=paper.expand(len(x), -1, -1, -1))),
    _Program("a step that loses rows", lambda dp, x, mask, paper: dp(x, mask, paper)),
    _Program("a step that returns every row twice", lambda dp, x, mask, p: dp(x.numpy(), mask.numpy(), p.numpy())),
    _Program("a step with no paper on cuda:1", lambda dp, x, mask, paper: dp(x, mask, paper=paper)),
    _Program(
        "a step that returns two rows in the middle in each other's place",
        lambda dp, x, mask, paper: _swapped(dp(x, mask, paper=paper.expand(len(x), -1, -1, -1))),
    ),
    _Program(
        "a step that changes a pixel of one row",
        lambda dp, x, mask, paper: _spotted(dp(x, mask, paper=paper.expand(len(x), -1, -1, -1))),
    ),
)


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    rows = [10] * len(_STEPS) + [random.randint(2, 32) for _ in range(2 * len(_STEPS))]
    return [
        Trial((step, _ALONE, torch.rand(n, 1, 8, 8, generator=generator) * 16))
        for step, n in zip(_STEPS * 3, rows, strict=True)
    ]


@wrong
def counts_rows_only(step: Any, alone: Any, images: Tensor) -> None:
    """this is how a test ends that counts rows and does not look at them. When a keyword is missing on the second GPU,
    all rows come back, and half of them were computed without it.

    Source: the keyword of pytorch/pytorch issue 16432, 2019
    """
    assert len(step(images)) == len(images)


@wrong
def in_any_order(step: Any, alone: Any, images: Tensor) -> None:
    """this is how a test ends that lets rows come back in a different order. A sum, a mean or a sorted list is the same
    in every order, and row 3 would get the label of row 4. Compare each row with its own.
    """
    torch.testing.assert_close(step(images).sum(), alone(images).sum())


@also(in_any_order)
def compares_means(step: Any, alone: Any, images: Tensor) -> None:
    torch.testing.assert_close(step(images).mean(), alone(images).mean())


@also(in_any_order)
def compares_sorted(step: Any, alone: Any, images: Tensor) -> None:
    torch.testing.assert_close(step(images).flatten().sort()[0], alone(images).flatten().sort()[0])


@wrong
def zips_them(step: Any, alone: Any, images: Tensor) -> None:
    """this is how a test ends that compares only the rows that both have, as `zip` does, which stops at the shorter
    list. Rows that are missing, or too many, are never compared. `zip(..., strict=True)` would raise.

    Source: the `zip` of pytorch/pytorch issue 7358, 2018
    """
    for mine, right in zip(step(images), alone(images), strict=False):
        torch.testing.assert_close(mine, right)


@wrong
def returns_its_finding(step: Any, alone: Any, images: Tensor) -> bool:
    """this is how a test ends that asserts nothing: every program passes. A test that *returns* False has passed, too.

    Source: pytest warns of it since version 7.2, 2022
    """
    return torch.equal(step(images), alone(images))
