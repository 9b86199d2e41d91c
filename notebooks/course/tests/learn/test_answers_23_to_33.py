"""Answers to the exercises of notebooks 23 to 33 that no mistake names: right ones in other words, wrong ones."""

import math
import zlib
from fractions import Fraction
from random import Random

import numpy as np
import pytest
import torch
from answers import assert_right, assert_wrong, pairs
from torch.nn import functional as F

from course.kit.learn.agree import near, same_values
from course.lessons.nb29.puzzles.failing_saves import failing_saves
from course.lessons.nb29.puzzles.version_after import cases, version_after


def loop_over_chunks(out, x, groups):
    out = out.clone()
    for part in out.chunk(groups, dim=1):
        part += x
    return out


def by_pairs(same):
    return lambda found, wanted: all(bool(same(mine, its)) for mine, its in zip(found, wanted, strict=True))


RIGHT = {
    "23.conv_by_hand": (
        lambda x, w: torch.einsum("bchwij,ocij->bohw", x.unfold(2, w.shape[2], 1).unfold(3, w.shape[3], 1), w),
    ),
    "24.weight_shape": (lambda a, b, k, g: torch.Size([b, a // g, k, k]),),
    "24.add_shortcut": (
        loop_over_chunks,
        lambda out, x, g: (out.view(len(x), g, *x.shape[1:]) + x[:, None].expand(-1, g, -1, -1, -1)).reshape(out.shape),
    ),
    "25.class_index": (
        lambda sizes: np.repeat(np.arange(len(sizes)), sizes),
        lambda sizes: torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)),
    ),
    "27.poly_rates": (lambda lr, factors, step, total: lr * np.array(factors) * max(0, 1 - step / total) ** 0.9,),
    "27.learning_rate": (lambda rate, old, new: torch.tensor(rate) * math.prod(new) / math.prod(old),),
    "27.rest_of": (
        lambda sizes, chosen: [
            sum(size for name, size in sizes if name not in chosen),
            tuple(n for n, _ in sizes if n not in chosen),
        ],
    ),
    "28.same": (lambda a, b: (a.view(torch.int32) == b.view(torch.int32)).all(),),
    "28.numpy_seed": (
        lambda seed: zlib.crc32(seed.to_bytes(8, "little")),
        lambda seed: np.random.SeedSequence(seed).generate_state(1)[0],
    ),
    "28.ordered_sum": (lambda arrived: float(np.cumsum([0.0, *(value for _, value in sorted(arrived))])[-1]),),
    "29.failing_saves": (lambda events: tuple(failing_saves(events)),),
    "30.bare_names": (
        lambda names: tuple(n[7:] for n in names) if all(n.startswith("module.") for n in names) else tuple(names),
    ),
    "30.left_over": (lambda model, file: [[n for n in model if n not in file], [n for n in file if n not in model]],),
    "32.source": (
        lambda i, size, output: Fraction((2 * i + 1) * size - output, 2 * output),
        lambda i, size, output: torch.tensor((i + 0.5) * size / output - 0.5),
    ),
    "32.prelu_by_relu": (lambda x, slopes: torch.where(x > 0, x, x * slopes.view(-1, 1, 1)),),
    "33.may_run": (lambda available, count, needed: available and count >= needed,),
    "33.same_gradients": (
        by_pairs(lambda mine, its: torch.allclose(mine, its, rtol=0, atol=1.00001e-5 * its.abs().max().item())),
    ),
    "33.host_reads": (lambda copies: torch.tensor([target == "cpu" for *_, target in copies], dtype=torch.bool).sum(),),
}
WRONG = {
    "23.conv_by_hand": (lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1).flip(2, 3), padding=1),),
    "23.put_back": (
        lambda columns, size, kernel: F.fold(columns.mul_(1), size, kernel) / F.fold(columns.fill_(1), size, kernel),
    ),
    "24.weight_shape": (lambda a, b, k, g: (b, a / g, k, k),),
    "24.add_shortcut": (
        lambda out, x, groups: out + x.repeat(1, groups, 1, 1),
        lambda out, x, groups: out.unflatten(1, (groups, -1)).add_(x.unsqueeze(1)).flatten(1, 2),
    ),
    "25.per_class": (lambda x, w: torch.einsum("nbi,noi->bno", x, w),),
    "25.add_bias": (lambda out, bias: out.add_(bias.T),),
    "27.rest_of": (
        lambda sizes, chosen: (
            sum(s for n, s in sizes if n not in chosen),
            sorted(n for n, _ in sizes if n not in chosen),
        ),
        lambda sizes, chosen: (
            sum(s for n, s in sizes if not any(c in n for c in chosen)),
            [n for n, _ in sizes if not any(c in n for c in chosen)],
        ),
    ),
    "28.same": (lambda a, b: repr(a.tolist()) == repr(b.tolist()),),
    "28.numpy_seed": (
        lambda seed: min(seed, 2**32 - 1),
        lambda seed: 404,
        lambda seed: float(seed % 2**32),
        lambda seed: int(np.random.randint(2**31)),
    ),
    "28.ordered_sum": (lambda arrived: float(np.sum([value for _, value in sorted(arrived)])),),
    "30.from_paddle": (lambda layer, weight: weight.t_() if layer == "Linear" else weight,),
    "32.fixed_window": (lambda size, out: None if size % out > 1 else (size - (out - 1) * (size // out), size // out),),
    "32.source": (lambda i, size, output: str((i + 0.5) * size / output - 0.5),),
    "32.prelu_by_relu": (lambda x, slopes: torch.relu_(x.clone()) - slopes.view(-1, 1, 1) * torch.relu_(x.neg_()),),
    "33.may_run": (lambda available, count, needed: count > needed,),
    "33.same_gradients": (
        by_pairs(lambda mine, its: abs(mine.norm() - its.norm()) <= 1e-5 * its.norm()),
        by_pairs(lambda mine, its: (mine - its).norm() <= 1e-5 * its.norm()),
        by_pairs(lambda mine, its: (mine - its).max() <= 1e-5 * its.abs().max()),
        by_pairs(lambda mine, its: (mine - its).abs().mean() <= 1e-5 * its.abs().max()),
        by_pairs(lambda mine, its: (mine - its).abs().max() <= 1e-5 * its.abs().mean()),
        by_pairs(lambda mine, its: (mine - its).abs().max() <= 1e-5 * its.max()),
    ),
    "33.host_reads": (lambda copies: any(target == "cpu" for *_, target in copies),),
}


@pytest.mark.parametrize(("key", "answer"), pairs(RIGHT))
def test_a_right_answer_in_other_words_passes(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer"), pairs(WRONG))
def test_a_wrong_answer_fails(key, answer):
    assert_wrong(key, answer)


ARGUMENTS = {  # of the methods that need some
    **dict.fromkeys(("add", "add_", "mul", "mul_"), (1,)),
    **dict.fromkeys(("unsqueeze", "unsqueeze_"), (0,)),
    "view": (-1,),
    "transpose_": (0, 1),
    "apply_": (lambda number: number,),
}


def test_torch_counts_versions_as_the_exercise_does():
    for case in cases(Random(0)):
        (names,) = case.args
        tensor = torch.ones(2, 3)
        for name in names:
            given = (tensor.clone(), lambda mine, other: mine) if name == "map_" else ARGUMENTS.get(name, ())
            getattr(tensor, name)(*given)
        assert tensor._version == version_after(names), names


def test_values_are_compared_and_their_containers_are_not():
    assert same_values((1, [torch.tensor(2), np.int64(3)]), [1, (2, 3)])
    assert not same_values(1, True) and not same_values([2.0], [2]) and not same_values([1], [1, 2])
    assert near(torch.tensor([0.1, 3.0]), [0.1, 3]) and near(1 + 1e-9j, 1 + 0j)
    assert not near([0.1], [0.1001]) and not near(0.1 + 0j, 0.1) and not near([0.1], 0.1) and not near("0.1", 0.1)
