"""Which form of the RoI operators computes where; the last tests need a real GPU."""

import sys

import pytest
import torch

import vgpu
from frcnn_lite.ops import roi_align, roi_pool, roi_pool_with_argmax

MODULES = {function.__name__: sys.modules[function.__module__] for function in (roi_pool, roi_align)}
REAL_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no real GPU here")


def case(dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    corner = torch.rand(50, 2, generator=draw) * 120 - 10
    boxes = torch.cat([corner, corner + torch.rand(50, 2, generator=draw) * 60], dim=1)
    rois = torch.cat([torch.randint(0, 2, (50, 1), generator=draw).float(), boxes], dim=1)
    return torch.randn(2, 6, 16, 17, generator=draw).to(dtype), rois


def answer(function, features, rois):
    """Values and gradient, on the CPU."""
    x = features.clone().requires_grad_()
    values = function(x, rois, (4, 3), 1 / 8)
    weights = torch.randn(values.shape, generator=torch.Generator().manual_seed(1)).to(values)
    (gradient,) = torch.autograd.grad(values, x, weights)
    return values.detach().cpu(), gradient.cpu()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    ("device", "kernels", "expected"),
    [
        ("cuda:0", True, True),
        ("cuda:1", True, True),
        ("cuda:0", False, False),
        ("cpu", True, False),
        ("mps", True, False),
    ],
)
def test_torchvision_computes_on_a_gpu_if_it_has_kernels_for_it(monkeypatch, name, device, kernels, expected):
    monkeypatch.setattr(MODULES[name], "has_cuda_kernels", lambda: kernels)
    assert MODULES[name].takes_regions(torch.device(device)) is expected


@pytest.mark.parametrize("name", MODULES)
def test_whether_there_are_kernels_is_what_torchvision_has_registered(monkeypatch, name):
    module = MODULES[name]

    def none(operator, key):
        raise RuntimeError(f"no kernel of {operator} for {key}")

    module.has_cuda_kernels.cache_clear()
    monkeypatch.setattr(torch.library, "get_kernel", none)
    assert module.has_cuda_kernels() is False
    module.has_cuda_kernels.cache_clear()
    monkeypatch.setattr(torch.library, "get_kernel", lambda operator, key: (operator, key))
    assert module.has_cuda_kernels() is True
    module.has_cuda_kernels.cache_clear()


@pytest.mark.parametrize("function", [roi_pool, roi_align])
def test_virtual_gpus_compute_what_the_cpu_does(monkeypatch, function):
    asked = []
    module = MODULES[function.__name__]
    monkeypatch.setattr(module, "takes_regions", lambda device: asked.append(device.type) or device.type == "cuda")
    features, rois = case()
    expected = answer(function, features, rois)
    with vgpu.virtual_gpus(2):
        found = answer(function, features.cuda(1), rois.cuda(1))
    assert all(map(torch.equal, found, expected)) and set(asked) == {"cpu"}


@pytest.mark.parametrize("function", [roi_pool, roi_align])
def test_deterministic_mode_adds_gradients_in_a_fixed_order(monkeypatch, function):
    """Torchvision's backward does not, and refuses this mode on a GPU."""
    module = MODULES[function.__name__]
    features, rois = case()
    expected = answer(function, features, rois)
    monkeypatch.setattr(module, "takes_regions", lambda device: True)
    for name in ("region_scatter", "region_spread"):
        monkeypatch.setattr(module, name, lambda *args: pytest.fail("in any order"), raising=False)
    torch.use_deterministic_algorithms(True)
    try:
        found = answer(function, features, rois)
    finally:
        torch.use_deterministic_algorithms(False)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


# ---- on a real GPU ---------------------------------------------------------------------------------------------------


@REAL_GPU
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_roi_pooling_finds_on_a_gpu_what_it_finds_on_the_cpu(dtype):
    features, rois = case(dtype)
    rois = rois.to(torch.promote_types(dtype, torch.float32))
    on_cpu, on_gpu = (
        [*roi_pool_with_argmax(x, r, (4, 3), 1 / 8)] for x, r in ((features, rois), (features.cuda(), rois.cuda()))
    )
    assert all(torch.equal(gpu.cpu(), cpu) for gpu, cpu in zip(on_gpu, on_cpu, strict=True))


@REAL_GPU
@pytest.mark.parametrize("function", [roi_pool, roi_align])
def test_values_and_gradients_on_a_gpu(function):
    features, rois = case()
    expected = answer(function, features, rois)
    for autocast in (False, True):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            found = answer(function, features.cuda(), rois.cuda())
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    strange = rois.clone()
    strange[::3, 1], strange[1::3, 4], strange[2::3, 3] = torch.nan, torch.inf, -1e30
    function(features.cuda(), strange.cuda(), 3, 1 / 8, *([2] if function is roi_align else [])).sum().item()
