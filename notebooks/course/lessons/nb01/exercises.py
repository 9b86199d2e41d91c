"""Exercises of notebook 01: what scatter loses, how one row is shared with all, and the test that catches the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Exercise, Mistake, Trial
from frcnn_lite import parallel


def _even_split(rows: int, devices: int) -> list[int]:
    return [rows // devices + (k < rows % devices) for k in range(min(rows, devices))]


def _kept(sizes: Sequence[int], devices: int, split: Callable[[int, int], list[int]]) -> int:
    chunks = [split(rows, devices) for rows in sizes]
    return sum(chunks[0][: min(map(len, chunks))])


def _count_rows(sizes: Sequence[int], devices: int) -> int:
    return max(0, sizes[0] - min(sizes))


def _first_piece_if(is_cut: Callable[[Sequence[int], int], bool], sizes: Sequence[int], devices: int) -> int:
    """All rows but those of the first piece, wherever a reader thinks that something is lost."""
    return sizes[0] - parallel.chunk_sizes(sizes[0], devices)[0] if is_cut(sizes, devices) else 0


def _has_fewer_rows(sizes: Sequence[int], devices: int) -> bool:
    return min(sizes) < sizes[0]


def _has_fewer_pieces(sizes: Sequence[int], devices: int) -> bool:
    pieces = [len(parallel.chunk_sizes(rows, devices)) for rows in sizes]
    return min(pieces) < pieces[0]


def _all_pieces_full(sizes: Sequence[int], devices: int) -> int:
    return sizes[0] - min(len(parallel.chunk_sizes(rows, devices)) for rows in sizes) * -(-sizes[0] // devices)


def _lost_cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[list[int], int]] = [
        ([10, 1], 2),
        ([10, 3], 2),
        ([10, 3], 4),
        ([10, 2], 8),
        ([10, 10], 8),
        ([6], 4),
    ]
    drawn = [([random.randint(1, 32) for _ in range(random.randint(1, 3))], random.randint(1, 8)) for _ in range(40)]
    return [Case(pair) for pair in fixed + drawn]


def _share_cases(random: Random) -> Sequence[Case]:
    """Every other `x2` is trained, and one is on a GPU, where it has to stay."""
    shapes = [(1, 100, 200), (1, 7), (1,), (1, 3, 4, 5)]
    rows = [10, 4, 7, 10, *(random.randint(1, 32) for _ in range(8))]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for i, n in enumerate(rows):
        place = "cuda:1" if i == 5 else "cpu"
        x2 = torch.rand(shapes[i % 4], generator=generator).to(place)
        like = torch.zeros(n, 3)  # noqa: FL002 on the CPU
        cases.append(Case((x2.requires_grad_(i % 2 == 1),), {"like": like}))
    return cases


def _memory(tensor: Tensor) -> tuple[int, int]:
    return tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()


def _same_view(given: object, expected: Tensor) -> bool:
    """Equal values in the memory of the one row, and gradients for it where it is trained."""
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.equal(given, expected)
        and _memory(given) == _memory(expected)
        and given.requires_grad == expected.requires_grad
    )


def _copies(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Right values everywhere, in memory of their own."""
    rights = [case.call(parallel.share) for case in cases]
    return all(
        isinstance(result, Tensor) and torch.equal(result, right) and _memory(result) != _memory(right)
        for result, right in zip(given, rights, strict=True)
    )


def _same_rows_always(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """As many rows whatever `like` is: the number of GPUs, in whichever way it was written."""
    rows = {result.shape[0] for result in given if isinstance(result, Tensor) and result.dim()}
    return len(rows) == 1 and rows != {1}


def test_step(step: Callable[[Tensor], Tensor], alone: Callable[[Tensor], Tensor], images: Tensor) -> None:
    """Fails unless `step`, on several GPUs, returns what `alone` returns on one."""
    out, right = step(images), alone(images)
    assert len(out) == len(right), f"{len(out)} rows came back of {len(right)}"
    torch.testing.assert_close(out, right)


def _counts_rows(step: Any, alone: Any, images: Tensor) -> None:
    assert len(step(images)) == len(images)


def _compares_with_zip(step: Any, alone: Any, images: Tensor) -> None:
    for mine, right in zip(step(images), alone(images), strict=False):
        torch.testing.assert_close(mine, right)


def _compares_sums(step: Any, alone: Any, images: Tensor) -> None:
    torch.testing.assert_close(step(images).sum(), alone(images).sum())


def _compares_means(step: Any, alone: Any, images: Tensor) -> None:
    torch.testing.assert_close(step(images).mean(), alone(images).mean())


def _compares_sorted(step: Any, alone: Any, images: Tensor) -> None:
    torch.testing.assert_close(step(images).flatten().sort()[0], alone(images).flatten().sort()[0])


def _returns(step: Any, alone: Any, images: Tensor) -> bool:
    return torch.equal(step(images), alone(images))


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


def _step_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    rows = [10] * len(_STEPS) + [random.randint(2, 32) for _ in range(2 * len(_STEPS))]
    return [
        Trial((step, _ALONE, torch.rand(n, 1, 8, 8, generator=generator) * 16))
        for step, n in zip(_STEPS * 3, rows, strict=True)
    ]


EXERCISES = (
    Exercise(
        key="01.rows_lost",
        task="Rows of the first argument that no replica sees, for positional tensors with these numbers of rows.",
        reference=parallel.rows_lost,
        cases=_lost_cases,
        hints=(
            "Cut every argument on its own first, with `parallel.chunk_sizes(rows, devices)`.",
            "`zip` stops at the shortest list. Lists of what?",
            "`chunks = [parallel.chunk_sizes(rows, devices) for rows in sizes]`; the first argument's pieces from "
            "position `min(map(len, chunks))` on are lost: add up their rows.",
        ),
        mistakes=(
            Mistake(
                "rows, not chunks",
                "this is what a function gives that compares numbers of rows. `zip` walks over *pieces*: on 2 GPUs, 10 "
                "rows are 2 pieces and 3 rows are 2 pieces as well, so nothing is lost.",
                'drawn so in the post of December 2021 in "Further reading"',
                answers=(_count_rows, lambda sizes, devices: max(sizes) - min(sizes)),
            ),
            Mistake(
                "half of the batch",
                "this is always half of the batch, which is lost where an argument has one row and there are 2 GPUs. "
                "On 4 GPUs it is 7 of 10 rows, and where all arguments have 10 rows it is none.",
                answers=(lambda sizes, devices: sizes[0] // 2,),
            ),
            Mistake(
                "only the first piece",
                "this is what a function gives that lets only the first piece come back. That is so where an argument "
                "has one row; with 3 rows on 4 GPUs three replicas run.",
                "pytorch/pytorch issue 7358, 2018, where the other argument has one row",
                answers=(
                    lambda sizes, devices: sizes[0] - parallel.chunk_sizes(sizes[0], devices)[0],
                    partial(_first_piece_if, _has_fewer_rows),
                    partial(_first_piece_if, _has_fewer_pieces),
                ),
            ),
            Mistake(
                "the shortest argument",
                "this is the number of rows of the shortest argument. It decides how many *pieces* are used; the rows "
                "that are lost are those of the first argument.",
                answers=(lambda sizes, devices: min(sizes),),
            ),
            Mistake(
                "every piece is full",
                "this is what a function gives that counts `ceil(rows / devices)` rows for every piece. The last one "
                "has what is left: 10 rows on 4 GPUs are 3, 3, 3 and 1.",
                answers=(_all_pieces_full,),
            ),
            Mistake(
                "even split",
                "this is what an even split gives. torch cuts pieces of `ceil(rows / devices)` rows and lets the last "
                "one have what is left, so the pieces can differ by more than one row, and there can be fewer pieces "
                "than devices.",
                "expected the same way in pytorch/pytorch pull request 930, 2017, and issue 18563, 2019",
                answers=(lambda sizes, devices: sizes[0] - _kept(sizes, devices, _even_split),),
            ),
        ),
    ),
    Exercise(
        key="01.share",
        task="`x2` of shape (1, ...) with a row for every row of `like`, without copying it.",
        reference=parallel.share,
        cases=_share_cases,
        agree=_same_view,
        hints=(
            "`expand` makes a view; what should the first size be so that both arguments are cut into the same chunks?",
            "Not a number you choose: `len(like)`.",
            "`return x2.expand(len(like), *x2.shape[1:])`",
        ),
        mistakes=(
            Mistake(
                "expands to the number of GPUs",
                "the number of rows is always the same here, whatever `like` is. If it is the number of GPUs, `y2` has "
                "a different number of rows on every machine, row i of `x1` has no row i of `x2`, and too small a "
                "number loses rows again.",
                'the repair of the post of December 2021 in "Further reading"',
                answers=(
                    lambda x2, like: x2.expand(2, *x2.shape[1:]),
                    lambda x2, like: x2.expand(8, *x2.shape[1:]),
                ),
                recognise=_same_rows_always,
            ),
            Mistake(
                "copies",
                "the rows are right, and they are copies, as `repeat` or `clone` makes them. For ten rows of `table`, "
                "`repeat` takes 800,000 bytes, and `expand` no byte beyond the 80,000 of the one row.",
                'the post of December 2021 in "Further reading" prefers `expand`, too',
                answers=(lambda x2, like: x2.repeat(len(like), *[1] * (x2.dim() - 1)),),
                recognise=_copies,
            ),
            Mistake(
                "cuts the graph",
                "the view is right, but it has no graph, as after `detach` or `.data`: a table that is trained, such "
                "as an embedding, would learn nothing.",
                answers=(lambda x2, like: parallel.share(x2.detach(), like=like),),
            ),
            Mistake(
                "expand_as",
                "this is what `expand_as` gives. It takes *all* sizes from `like`, and you want one of them: its "
                "number of rows.",
                answers=(lambda x2, like: x2.expand_as(like),),
            ),
        ),
    ),
    Exercise(
        key="01.test_step",
        task=(
            "A test that passes for a right step on several GPUs, and fails for one that loses, doubles, changes or "
            "moves rows."
        ),
        reference=test_step,
        cases=_step_cases,
        hints=(
            "`step(images)` and `alone(images)` should be the same tensor. What can be different about them?",
            "Compare the number of rows first, and then the values: a row can come back and be wrong.",
            "`assert len(out) == len(right)`, and then `torch.testing.assert_close(out, right)`.",
        ),
        mistakes=(
            Mistake(
                "counts rows only",
                "this is how a test ends that counts rows and does not look at them. When a keyword is missing on the "
                "second GPU, all rows come back, and half of them were computed without it.",
                "the keyword of pytorch/pytorch issue 16432, 2019",
                answers=(_counts_rows,),
            ),
            Mistake(
                "in any order",
                "this is how a test ends that lets rows come back in a different order. A sum, a mean or a sorted list "
                "is the same in every order, and row 3 would get the label of row 4. Compare each row with its own.",
                answers=(_compares_sums, _compares_means, _compares_sorted),
            ),
            Mistake(
                "zip",
                "this is how a test ends that compares only the rows that both have, as `zip` does, which stops at the "
                "shorter list. Rows that are missing, or too many, are never compared. `zip(..., strict=True)` would "
                "raise.",
                "the `zip` of pytorch/pytorch issue 7358, 2018",
                answers=(_compares_with_zip,),
            ),
            Mistake(
                "returns",
                "this is how a test ends that asserts nothing: every program passes. A test that *returns* False has "
                "passed, too.",
                "pytest warns of it since version 7.2, 2022",
                answers=(_returns,),
            ),
        ),
    ),
)
