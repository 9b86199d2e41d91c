"""SyncBatchNorm back to BatchNorm: same values, same statistics, same state dict."""

import pytest
import torch
from torch import nn

from frcnn_lite.export.sync_batchnorm import revert_sync_batchnorm


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


def test_shared_modules_stay_shared_and_weights_load():
    shared = nn.SyncBatchNorm(4)
    net = nn.Sequential(shared, nn.Conv2d(4, 4, 1), shared)
    changed = revert_sync_batchnorm(net)
    assert changed[0] is changed[2] and type(changed[0]) is nn.BatchNorm2d
    assert not any(isinstance(module, nn.SyncBatchNorm) for module in changed.modules())
    changed.load_state_dict(net.state_dict())
    assert changed[0].weight is not shared.weight and type(net[0]) is nn.SyncBatchNorm
