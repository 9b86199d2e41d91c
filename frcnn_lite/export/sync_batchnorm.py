"""SyncBatchNorm back to BatchNorm: for one GPU, for a CPU, and for a file that other runtimes read.

torch converts in one direction, `nn.SyncBatchNorm.convert_sync_batchnorm`. The way back has to know what that way
forgot, the number of dimensions: SyncBatchNorm takes any, BatchNorm1d, 2d and 3d one each.
"""

import copy

from torch import nn

BatchNorm = type[nn.BatchNorm1d] | type[nn.BatchNorm2d] | type[nn.BatchNorm3d]


def revert_sync_batchnorm(model: nn.Module, batch_norm: BatchNorm = nn.BatchNorm2d) -> nn.Module:
    """A copy of `model` with every `nn.SyncBatchNorm` replaced by a plain layer.

    Values in eval mode are equal bit for bit, and the state dict is the same. In training the statistics are those of
    one device from then on.

    Args:
        model: it stays as it is.
        batch_norm: the class of the plain layers. They have the same parameters, statistics and mode.
    """
    shell = nn.Sequential(copy.deepcopy(model))
    made: dict[nn.Module, nn.Module] = {}
    for name, module in list(shell.named_modules(remove_duplicate=False)):
        if isinstance(module, nn.SyncBatchNorm):
            if module not in made:
                made[module] = _as(batch_norm, module)
            shell.set_submodule(name, made[module])
    return shell[0]


def _as(batch_norm: BatchNorm, sync: nn.SyncBatchNorm) -> nn.Module:
    # Parameters and buffers move over as they are: device, dtype and requires_grad with them.
    plain = batch_norm(sync.num_features, sync.eps, sync.momentum, sync.affine, sync.track_running_stats, device="meta")
    plain._parameters.update(sync._parameters)
    plain._buffers.update(sync._buffers)
    return plain.train(sync.training)
