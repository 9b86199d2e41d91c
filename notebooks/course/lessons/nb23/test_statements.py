"""Statements in the prose of notebook 23 that no output shows, run again."""

import random

import torch
from told import cell, says
from torch import nn
from torch.nn import functional as F

from course.lessons.nb23.puzzles.rows_needed import rows_needed


def test_the_rows_are_those_that_have_a_gradient():
    for _ in range(100):
        kernel, stride, padding, dilation = (random.randint(1, 4), random.randint(1, 3), random.randint(0, 2), 2)
        x = torch.zeros(1, 1, random.randint(14, 24), 1, dtype=torch.float64, requires_grad=True)
        taps = torch.ones(1, 1, kernel, 1, dtype=torch.float64)
        y = F.conv2d(x, taps, stride=(stride, 1), padding=(padding, 0), dilation=(dilation, 1))
        first = random.randrange(y.shape[2])
        (gradient,) = torch.autograd.grad(y[:, :, first:].sum(), x)
        used = gradient.flatten().nonzero().flatten().tolist()
        top, bottom = rows_needed(first, y.shape[2] - 1, kernel, stride, padding, dilation)
        if used:
            assert max(top, 0) <= used[0] and used[-1] <= bottom


def test_the_sizes_of_a_row_and_of_half_a_picture():
    row = 16_384 * 64 * 4
    assert row == 4 * 2**20 and round(row * 8192 / 1e9) == 34
    assert says("23", "in float32 one row is 4 MB, and half of the picture is 34 GB")


def test_fold_is_the_reverse_where_windows_do_not_overlap():
    x = torch.rand(1, 3, 8, 8)
    assert torch.equal(F.fold(F.unfold(x, 4, stride=4), (8, 8), 4, stride=4), x)
    assert says("23", "For a stride as large as the window")


def test_a_fold_of_ones_divides():
    x = torch.rand(1, 3, 8, 8)
    counts = F.fold(F.unfold(torch.ones_like(x), 3), (8, 8), 3)
    torch.testing.assert_close(F.fold(F.unfold(x, 3), (8, 8), 3) / counts, x)
    assert says("23", "Divide by the `fold` of ones.")


def test_halves_under_batch_norm_differ_everywhere():
    x = torch.randn(2, 3, 16, 10)
    x[:, :, 8:] += 1
    whole = nn.BatchNorm2d(3)(x)
    joined = torch.cat([nn.BatchNorm2d(3)(half) for half in x.chunk(2, dim=2)], dim=2)
    assert ((whole - joined).abs() > 1e-4).float().mean() > 0.99
    assert says("23", "the halves differ everywhere, not only at the seam")


def test_a_large_halo_serves_ten_layers():
    torch.manual_seed(0)
    weight, x = torch.randn(1, 1, 3, 3, dtype=torch.float64) / 3, torch.randn(1, 1, 40, 8, dtype=torch.float64)
    whole, upper, rows = x, F.pad(x[:, :, :30], (0, 0, 10, 0)), []
    for _ in range(10):
        whole = F.conv2d(whole, weight, padding=1)
        upper = F.conv2d(upper, weight, padding=(0, 1))
        rows.append(upper.shape[2] - 20)
    assert [extra // 2 for extra in rows] == list(range(9, -1, -1)) and sum(range(10)) == 45
    torch.testing.assert_close(upper[:, :, 10:], whole[:, :, 10:20])  # beside the edge, where zeros are not a halo
    assert says("23", "9 + 8 + ... + 0 = 45 of them on each")


def test_one_position_of_fold_is_a_view():
    product = torch.rand(1, 4, 640)
    assert torch.equal(F.fold(product, (16, 40), 1), product.view(1, 4, 16, 40))
    assert says("23", "this `fold` has windows of one pixel, so a `view` does the same")


def test_the_halo_adds():
    source = cell("23", "class Halo")
    assert "own[:, :, ctx.edge] += Halo.exchange" in source
    assert says("23", "backward sends the copy's gradient home, where it is added")
