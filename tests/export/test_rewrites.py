"""Adaptive pooling, PReLU and SyncBatchNorm rewritten for other runtimes: equal, or refused."""

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from frcnn_lite.export import adaptive_pool
from frcnn_lite.export.adaptive_pool import adaptive_windows, fixed_window, rewrite_adaptive_pools
from frcnn_lite.export.prelu import TwoReluPReLU, rewrite_prelu
from frcnn_lite.export.sync_batchnorm import revert_sync_batchnorm

SIZES = st.integers(1, 64)


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


@given(SIZES, SIZES, SIZES, SIZES, st.booleans(), st.integers(0, 2**31))
@settings(max_examples=150, deadline=None)
def test_two_dimensions(height, width, rows, columns, average, seed):
    pool = (nn.AdaptiveAvgPool2d if average else nn.AdaptiveMaxPool2d)((rows, columns))
    x = torch.randn(2, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
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
        self.act = self.same_act = nn.PReLU(4)
        self.norm = nn.SyncBatchNorm(4)
        self.pool = nn.AdaptiveAvgPool2d((None, 3))
        self.twice = nn.AdaptiveMaxPool2d(2)
        self.idle = nn.AdaptiveMaxPool2d(1)

    def forward(self, x):
        x = self.same_act(self.norm(self.act(self.conv(x))))
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


@pytest.mark.parametrize("shape", [(5,), (2, 4), (2, 4, 5), (2, 4, 5, 6)])
@pytest.mark.parametrize("slopes", [1, 4])
def test_prelu_of_two_relus_is_equal_bit_for_bit(shape, slopes):
    if len(shape) == 1 and slopes > 1:
        pytest.skip("one axis has no channels")
    torch.manual_seed(0)
    prelu, x = nn.PReLU(slopes), torch.randn(shape, requires_grad=True)
    nn.init.normal_(prelu.weight)
    two = rewrite_prelu(prelu)
    assert isinstance(two, TwoReluPReLU) and torch.equal(two(x), prelu(x))
    for one, other in zip(
        torch.autograd.grad(two(x).square().sum(), [x, two.weight]),
        torch.autograd.grad(prelu(x).square().sum(), [x, prelu.weight]),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=1e-5)


def test_the_gradient_at_zero_differs():
    x, prelu = torch.zeros(1, requires_grad=True), nn.PReLU()
    assert torch.autograd.grad(prelu(x), x)[0] == 0.25
    assert torch.autograd.grad(rewrite_prelu(prelu)(x), x)[0] == 0


def test_shared_modules_stay_shared_and_weights_load():
    net = Net()
    changed = revert_sync_batchnorm(rewrite_prelu(net))
    assert changed.act is changed.same_act and type(changed.norm) is nn.BatchNorm2d
    assert not any(isinstance(m, nn.PReLU | nn.SyncBatchNorm) for m in changed.modules())
    changed.load_state_dict(net.state_dict())
    assert changed.act.weight is not net.act.weight


@pytest.mark.parametrize(("batch_norm", "dimensions"), [(nn.BatchNorm1d, 1), (nn.BatchNorm2d, 2), (nn.BatchNorm3d, 3)])
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}])
def test_batch_norm_there_and_back(batch_norm, dimensions, options):
    torch.manual_seed(0)
    plain, x = batch_norm(3, **options), torch.randn(4, 3, *[5] * dimensions)
    plain(x)
    back = revert_sync_batchnorm(nn.SyncBatchNorm.convert_sync_batchnorm(plain).eval(), batch_norm)
    assert type(back) is batch_norm and not back.training and repr(back) == repr(plain)
    assert torch.equal(back(x), plain.eval()(x))
    assert torch.equal(back.train()(x), plain.train()(x))
    assert all(p.device.type == "cpu" for p in [*back.parameters(), *back.buffers()])


@pytest.mark.parametrize("name", ["adaptive_pool", "prelu", "sync_batchnorm", "onnx_trial", "onnx_detector"])
def test_file_runs_outside_the_package(name, tmp_path):
    source = Path(adaptive_pool.__file__).with_name(f"{name}.py")
    shutil.copy(source, tmp_path / f"taken_{name}.py")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import taken_{name}"
    program += "; sys.exit(any(module.startswith('frcnn_lite') for module in sys.modules))"
    assert subprocess.run([sys.executable, "-I", "-c", program]).returncode == 0
