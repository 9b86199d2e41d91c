"""roi_pool against slow loops, torchvision and numerical gradients, in both kernels."""

import importlib
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from frcnn_lite.ops import roi_pool

# By name, as `frcnn_lite.ops.roi_pool` is the function to an import statement.
roi_pool_module = importlib.import_module("frcnn_lite.ops.roi_pool")


@pytest.fixture(params=["compiled", "torch"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "torch":
        monkeypatch.setattr(roi_pool_module, "compiled", lambda name: None)
    else:
        pytest.importorskip("numba")
    yield request.param


def values_and_argmax(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float) -> tuple[Tensor, Tensor]:
    return torch.ops.frcnn_lite.roi_pool(features, rois, ph, pw, scale)


def slow_roi_pool(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float) -> tuple[Tensor, Tensor]:
    """The rule cell by cell, in NumPy scalars of the features' precision."""
    maps = features.numpy()
    number = maps.dtype.type
    _, channels, height, width = maps.shape
    values = np.zeros((len(rois), channels, ph, pw), maps.dtype)
    argmax = np.full(values.shape, -1, np.int32)

    def half_away(x: np.floating) -> int:
        return int(math.copysign(math.floor(abs(float(x)) + 0.5), float(x)))  # exact: float32 sums in double

    for r, roi in enumerate(rois.numpy()):
        x1, y1, x2, y2 = (half_away(corner * number(scale)) for corner in roi[1:])
        bin_height = number(max(y2 - y1 + 1, 1)) / number(ph)
        bin_width = number(max(x2 - x1 + 1, 1)) / number(pw)
        for i in range(ph):
            top = min(max(int(np.floor(number(i) * bin_height)) + y1, 0), height)
            bottom = min(max(int(np.ceil(number(i + 1) * bin_height)) + y1, 0), height)
            for j in range(pw):
                left = min(max(int(np.floor(number(j) * bin_width)) + x1, 0), width)
                right = min(max(int(np.ceil(number(j + 1) * bin_width)) + x1, 0), width)
                for c in range(channels):
                    best = -np.inf
                    for y in range(top, bottom):
                        for x in range(left, right):
                            if maps[int(roi[0]), c, y, x] > best:
                                best = values[r, c, i, j] = maps[int(roi[0]), c, y, x]
                                argmax[r, c, i, j] = y * width + x
    return torch.from_numpy(values), torch.from_numpy(argmax)


def random_case(
    dtype: torch.dtype, rois: int = 40, images: int = 3, channels: int = 5, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Features (images, channels, 13, 17), and regions of which some are swapped and some lie outside the map."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(images, channels, 13, 17, generator=generator, dtype=dtype)
    corners = torch.rand(rois, 4, generator=generator, dtype=dtype) * 160 - 20
    ordered = torch.cat(
        [torch.minimum(corners[:, :2], corners[:, 2:]), torch.maximum(corners[:, :2], corners[:, 2:])], 1
    )
    corners = torch.where(torch.arange(rois).unsqueeze(1) % 4 == 0, corners, ordered)
    image = torch.randint(0, images, (rois, 1), generator=generator).to(dtype)
    return features, torch.cat([image, corners], dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1 / 8, 0.1])
def test_equals_the_slow_oracle(kernel: str, dtype: torch.dtype, scale: float) -> None:
    features, rois = random_case(dtype)
    values, argmax = values_and_argmax(features, rois, 4, 3, scale)
    expected_values, expected_argmax = slow_roi_pool(features, rois, 4, 3, scale)
    assert torch.equal(values, expected_values) and torch.equal(argmax, expected_argmax)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tied", [False, True])
def test_equals_torchvision_bit_for_bit(kernel: str, dtype: torch.dtype, tied: bool) -> None:
    pytest.importorskip("torchvision")
    features, rois = random_case(dtype, rois=300, channels=16)
    features = (features * 2).round() if tied else features
    ours, theirs = features.clone().requires_grad_(), features.clone().requires_grad_()
    values, argmax = values_and_argmax(ours, rois, 7, 5, 1 / 8)
    expected_values, expected_argmax = torch.ops.torchvision.roi_pool(theirs, rois, 1 / 8, 7, 5)
    assert torch.equal(values, expected_values) and torch.equal(argmax, expected_argmax)
    gradient = torch.randn(values.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    values.backward(gradient)
    expected_values.backward(gradient)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12 if dtype == torch.float64 else 1e-5, atol=1e-6)


@pytest.mark.parametrize(("height", "bins"), [(57, 7), (57, 14)])
def test_bin_edges_are_float32_products(kernel: str, height: int, bins: int) -> None:
    """For these sizes an end computed in float32 lies one row beyond the exact one, as in Caffe and torchvision."""
    features = torch.arange(70.0).view(1, 1, 70, 1)
    rois = torch.tensor([[0.0, 0.0, 0.0, 0.0, height - 1.0]])
    values, _ = values_and_argmax(features, rois, bins, 1, 1.0)
    exact = torch.tensor([-(-(i + 1) * height // bins) - 1 for i in range(bins)])
    assert set((values.flatten() - exact).tolist()) == {0.0, 1.0}
    assert torch.equal(values, slow_roi_pool(features, rois, bins, 1, 1.0)[0])


@pytest.mark.parametrize(("corner", "cell"), [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, 0), (0.49999997, 0), (2.4, 2)])
def test_corners_are_rounded_half_away_from_zero(kernel: str, corner: float, cell: int) -> None:
    features = torch.arange(9.0).view(1, 1, 1, 9)
    values = roi_pool(features, torch.tensor([[0.0, corner, 0.0, corner, 0.0]]), 1)
    assert values.item() == cell


def test_minus_one_half_rounds_out_of_the_map(kernel: str) -> None:
    _, argmax = values_and_argmax(torch.ones(1, 1, 4, 4), torch.tensor([[0.0, -0.5, 0.0, -0.5, 0.0]]), 1, 1, 1.0)
    assert argmax.item() == -1


def test_a_golden_map(kernel: str) -> None:
    features = torch.arange(25.0).view(1, 1, 5, 5)
    pooled = roi_pool(features, torch.tensor([[0.0, 1.0, 1.0, 4.0, 4.0]]), 2)
    assert pooled.tolist() == [[[[12.0, 14.0], [22.0, 24.0]]]]


def test_a_region_with_swapped_corners_is_one_cell(kernel: str) -> None:
    features = torch.arange(25.0).view(1, 1, 5, 5)
    pooled = roi_pool(features, torch.tensor([[0.0, 3.0, 2.0, 1.0, 0.0]]), 2)
    assert pooled.unique().tolist() == [13.0]


def test_bins_outside_the_map_are_zero_and_take_no_gradient(kernel: str) -> None:
    features = torch.full((1, 2, 4, 4), -3.0, requires_grad=True)
    values, argmax = values_and_argmax(features, torch.tensor([[0.0, 2.0, 2.0, 9.0, 9.0]]), 4, 4, 1.0)
    outside = torch.ones(4, 4, dtype=torch.bool)
    outside[0, 0] = False
    assert (values[..., outside] == 0).all() and (argmax[..., outside] == -1).all()
    values.sum().backward()
    assert features.grad is not None and features.grad.sum() == 2.0


def test_of_equal_features_the_first_in_row_major_order_wins(kernel: str) -> None:
    _, argmax = values_and_argmax(torch.ones(1, 1, 6, 6), torch.tensor([[0.0, 1.0, 2.0, 4.0, 5.0]]), 1, 1, 1.0)
    assert argmax.item() == 2 * 6 + 1


@pytest.mark.parametrize("channels_last", [False, True])
def test_gradient_is_the_numerical_one(kernel: str, channels_last: bool) -> None:
    # Distinct features far apart compared to the step of gradcheck: a maximum has no gradient at a tie.
    order = torch.randperm(2 * 3 * 7 * 6, generator=torch.Generator().manual_seed(2))
    features = (order.double() / 10).view(2, 3, 7, 6)
    if channels_last:
        features = features.contiguous(memory_format=torch.channels_last)
    rois = torch.tensor([[0, 0, 0, 4, 5], [1, 1, 2, 5, 6], [1, -3, 2, 9, 3], [0, 4, 4, 2, 2]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: roi_pool(x, rois, (3, 2)), features.requires_grad_())


def test_memory_format_changes_nothing_but_the_format_of_the_gradient(kernel: str) -> None:
    features, rois = random_case(torch.float32)
    plain, last = features.clone(), features.contiguous(memory_format=torch.channels_last)
    pooled = [roi_pool(x.requires_grad_(), rois, 3, 1 / 8) for x in (plain, last)]
    assert torch.equal(*pooled)
    for values in pooled:
        values.square().sum().backward()
    assert plain.grad is not None and last.grad is not None and torch.equal(plain.grad, last.grad)
    assert last.grad.is_contiguous(memory_format=torch.channels_last)


def test_no_regions(kernel: str) -> None:
    features = torch.ones(1, 2, 3, 3, requires_grad=True)
    pooled = roi_pool(features, torch.zeros(0, 5), 2)
    assert pooled.shape == (0, 2, 2, 2)
    pooled.sum().backward()
    assert features.grad is not None and not features.grad.any()


def test_many_regions_in_the_torch_kernel_equal_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The torch kernel works through the regions in parts; a part boundary must not show."""
    monkeypatch.setattr(roi_pool_module, "compiled", lambda name: None)
    features = torch.randn(1, 64, 48, 48, generator=torch.Generator().manual_seed(0))
    corners = torch.rand(40, 4, generator=torch.Generator().manual_seed(1)) * 48
    rois = torch.cat([torch.zeros(40, 1), corners], dim=1)
    assert torch.equal(roi_pool(features, rois, 7), torch.cat([roi_pool(features, r[None], 7) for r in rois]))


def test_wrong_arguments_are_named() -> None:
    features, rois = torch.zeros(1, 1, 4, 4), torch.zeros(2, 5)
    with pytest.raises(
        ValueError, match=r"features must be \(N, C, H, W\) float32 or float64, got \(1, 1, 4, 4\) torch.int64"
    ):
        roi_pool(features.long(), rois, 2)
    with pytest.raises(ValueError, match=r"rois must be \(R, 5\) torch.float32 like the features, got \(2, 4\)"):
        roi_pool(features, rois[:, 1:], 2)
    with pytest.raises(ValueError, match=r"output_size must be positive, got \(2, 0\)"):
        roi_pool(features, rois, (2, 0))


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_operator_keeps_the_promises_it_registers(channels_last: bool) -> None:
    features, rois = random_case(torch.float64, rois=5)
    if channels_last:
        features = features.contiguous(memory_format=torch.channels_last)
    torch.library.opcheck(torch.ops.frcnn_lite.roi_pool, (features.requires_grad_(), rois, 3, 2, 0.125))
