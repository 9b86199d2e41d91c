"""nn.DataParallel over virtual GPUs computes what one CPU pass computes."""

import copy

import pytest
import torch
from torch import nn

import vgpu
from frcnn_lite.parallel import reduce_loss


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_losses_and_gradients_of_a_step(model, truth64, devices: int, dtype: torch.dtype, tolerance: float) -> None:
    batch = [t.to(dtype) if t.is_floating_point() else t for t in truth64]  # 5 rows: uneven chunks
    for parameter in model.parameters():  # residual blocks start at zero, where half of the gradients vanish
        parameter.data += 0.05
    on_cpu, on_gpus = model.to(dtype), copy.deepcopy(model).to(dtype)
    expected = reduce_loss(*on_cpu(*batch))
    sum(expected.values()).backward()
    with vgpu.virtual_gpus(devices):
        on_gpus.cuda()
        parallel = nn.DataParallel(on_gpus, device_ids=list(range(devices)))
        losses = reduce_loss(*parallel(*(tensor.cuda() for tensor in batch)))
        sum(losses.values()).backward()
        for name, loss in losses.items():
            torch.testing.assert_close(loss.detach().cpu(), expected[name].detach(), rtol=tolerance, atol=0)
        for (name, want), got in zip(on_cpu.named_parameters(), on_gpus.parameters(), strict=True):
            # Relative to the largest entry: a sum of many terms of both signs can be small where its error is not.
            assert (got.grad.cpu() - want.grad).abs().max() <= tolerance * want.grad.abs().max(), name


def test_detections(model, truth64) -> None:
    model = model.double().eval()
    expected = model(truth64.images)
    with vgpu.virtual_gpus(2):
        found = nn.DataParallel(model.cuda(), device_ids=[0, 1])(truth64.images.cuda())
        for got, want in zip(found, expected, strict=True):
            torch.testing.assert_close(got.cpu(), want, rtol=1e-10, atol=1e-10)
