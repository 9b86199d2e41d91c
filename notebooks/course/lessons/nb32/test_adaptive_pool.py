"""Adaptive pooling rewritten as fixed pooling: equal, or refused."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course.lessons.nb32.adaptive_pool import adaptive_windows, fixed_window, rewrite_adaptive_pools


def claims(size, output):
    try:
        return fixed_window(size, output)
    except ValueError:
        return None


def test_every_pair_up_to_64_is_claimed_or_refused_rightly():
    """Against torch itself: the sums of distinct powers show which cells a window holds."""
    exact = 0
    for size in range(1, 65):
        cells = torch.eye(size, dtype=torch.float64).unsqueeze(1)
        for output in range(1, 65):
            adaptive = F.adaptive_max_pool1d(cells, output)  # cell i lies in window j where [i, 0, j] is 1
            windows = [(int(w.nonzero()[0]), int(w.nonzero()[-1]) + 1) for w in adaptive[:, 0].T]
            assert adaptive_windows(size, output) == windows
            found = claims(size, output)
            starts = [start for start, _ in windows]
            possible = len({end - start for start, end in windows}) == 1
            steps = {b - a for a, b in itertools.pairwise(starts)}
            possible &= len(steps) < 2 and 0 not in steps
            assert (found is not None) == possible
            if found is not None:
                assert torch.equal(F.max_pool1d(cells, found.kernel, found.stride), adaptive)
                exact += 1
    assert exact == 490


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_two_dimensions(average, seed):
    draw = torch.Generator().manual_seed(seed)
    height, width, rows, columns = (int(n) for n in torch.randint(1, 12 if seed % 2 else 65, (4,), generator=draw))
    pool = (nn.AdaptiveAvgPool2d if average else nn.AdaptiveMaxPool2d)((rows, columns))
    x = torch.randn(2, 3, height, width, dtype=torch.float64, generator=draw)
    result = rewrite_adaptive_pools(pool, x)
    exact = claims(height, rows) is not None and claims(width, columns) is not None
    assert bool(result.rewritten) == exact and bool(result.kept) == (not exact)
    assert torch.allclose(result.model(x), pool(x), rtol=1e-10)
    assert type(result.model) is not type(pool) if exact else type(result.model) is type(pool)


def test_refusal_says_why():
    with pytest.raises(ValueError, match=r"10 cells to 4: its windows are \[3\] long and \[2, 3\] apart"):
        fixed_window(10, 4)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        fixed_window(0, 3)
    assert fixed_window(7, 3) == (3, 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.AdaptiveAvgPool2d((None, 3))
        self.twice = nn.AdaptiveMaxPool2d(2)
        self.idle = nn.AdaptiveMaxPool2d(1)

    def forward(self, x):
        x = self.norm(self.conv(x))
        return self.pool(x), self.twice(x), self.twice(self.pool(x))


def test_whole_model_keeps_what_cannot_go_and_the_given_one_untouched():
    torch.manual_seed(0)
    net, x = Net().train(), torch.randn(2, 3, 9, 9)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    result = rewrite_adaptive_pools(net, x)
    assert result.rewritten.keys() == {"pool"} and "kernel_size=(1, 3), stride=(1, 2)" in result.rewritten["pool"]
    assert result.kept == {
        "twice": "it was reached by inputs of sizes [(7, 3), (7, 7)]",
        "idle": "no input reached it",
    }
    assert type(net.pool) is nn.AdaptiveAvgPool2d and net.training and result.model.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    for one, other in zip(result.model.eval()(x), net.eval()(x), strict=True):
        assert torch.allclose(one, other, rtol=1e-5)


def test_indices_of_max_pooling_survive():
    pool, x = nn.AdaptiveMaxPool2d(3, return_indices=True), torch.randn(2, 3, 7, 7)
    for one, other in zip(rewrite_adaptive_pools(pool, x).model(x), pool(x), strict=True):
        assert torch.equal(one, other)
