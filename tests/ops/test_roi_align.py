"""roi_align against loops, torchvision and numerical gradients, in plain torch and compiled for the CPU."""

import math
import sys

import pytest
import torch
from torch import Tensor

from frcnn_lite.ops.roi_align import align_weights, roi_align

# Not `frcnn_lite.ops.roi_align`, which to an import statement is the function; in a copy the module lies elsewhere.
module = sys.modules[roi_align.__module__]
operators = getattr(torch.ops, module.NAMESPACE)


@pytest.fixture(params=["compiled", "torch", "as on a GPU"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "as on a GPU":
        pytest.importorskip("torchvision")
        monkeypatch.setattr(module, "takes_regions", lambda device: True)
    elif request.param == "torch":
        monkeypatch.setattr(module, "compiled", lambda name: None)
    elif module.compiled("numba_roi_align") is None:
        pytest.skip("no compiled form here")
    return request.param


def random_case(
    dtype: torch.dtype, regions: int = 60, channels: int = 5, swapped: bool = False
) -> tuple[Tensor, Tensor]:
    """Features (3, channels, 13, 17), and regions at 1/8 of which some leave the map, some are tiny, some swapped."""
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(3, channels, 13, 17, generator=draw, dtype=dtype)
    corners = torch.rand(regions, 2, 2, generator=draw, dtype=dtype) * 170 - 20
    boxes = corners.flatten(1) if swapped else torch.cat([corners.amin(1), corners.amax(1)], dim=1)
    boxes[::7] *= 0.05
    return features, torch.cat([torch.randint(0, 3, (regions, 1), generator=draw).to(dtype), boxes], dim=1)


def point_mean(plane: Tensor, top: float, left: float, height: float, width: float, rows: int, columns: int) -> float:
    """Mean of a bin's points, one by one."""
    limit_y, limit_x = plane.shape
    total = 0.0
    for v in range(rows):
        for u in range(columns):
            y, x = top + (v + 0.5) * height / rows, left + (u + 0.5) * width / columns
            if y < -1 or y > limit_y or x < -1 or x > limit_x:
                continue
            y, x = min(max(y, 0.0), limit_y - 1.0), min(max(x, 0.0), limit_x - 1.0)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, limit_y - 1), min(x0 + 1, limit_x - 1)
            b, a = y - y0, x - x0
            upper = (1 - a) * plane[y0, x0] + a * plane[y0, x1]
            total += float((1 - b) * upper + b * ((1 - a) * plane[y1, x0] + a * plane[y1, x1]))
    return total / max(rows * columns, 1)


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [False, True])
def test_equals_the_mean_of_points(kernel: str, ratio: int, aligned: bool) -> None:
    features, rois = random_case(torch.float64, regions=9, channels=2)
    found = roi_align(features, rois, (3, 2), 1 / 8, ratio, aligned)
    for r, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (corner / 8 - 0.5 * aligned for corner in corners)
        h, w = (side if aligned else max(side, 1.0) for side in (y2 - y1, x2 - x1))
        grid = (ratio, ratio) if ratio else (math.ceil(h / 3), math.ceil(w / 2))
        for c, i, j in torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(2)).tolist():
            bin = y1 + i * h / 3, x1 + j * w / 2, h / 3, w / 2
            assert found[r, c, i, j].item() == pytest.approx(
                point_mean(features[int(image), c], *bin, *grid), abs=1e-12
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("ratio", [-1, 1, 2, 3])
@pytest.mark.parametrize("aligned", [False, True])
def test_equals_torchvision(
    kernel: str, dtype: torch.dtype, layout: torch.memory_format, ratio: int, aligned: bool
) -> None:
    torchvision = pytest.importorskip("torchvision")
    # With swapped corners, `aligned` and -1 torchvision asks for a negative amount of memory.
    features, rois = random_case(dtype, channels=70, swapped=ratio > 0 or not aligned)
    ours, theirs = (features.clone(memory_format=layout).requires_grad_() for _ in range(2))
    arguments = rois, (4, 3), 1 / 8, ratio, aligned
    values, expected = roi_align(ours, *arguments), torchvision.ops.roi_align(theirs, *arguments)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(values, expected, rtol=tolerance, atol=tolerance)
    grad = torch.randn(values.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    values.backward(grad)
    expected.backward(grad)
    assert ours.grad is not None and theirs.grad is not None and ours.grad.is_contiguous(memory_format=layout)
    # Sums of hundreds of terms cancel: the error is relative to the largest.
    assert (ours.grad - theirs.grad).abs().max() <= 2 * tolerance * theirs.grad.abs().max()


def test_a_region_with_swapped_corners_has_no_points(kernel: str) -> None:
    features = torch.ones(1, 1, 8, 8)
    assert roi_align(features, torch.tensor([[0.0, 5.0, 5.0, 2.0, 2.0]]), 2, aligned=True).abs().sum() == 0


@pytest.mark.parametrize("ratio", [-1, 2])
def test_gradients_are_the_numerical_ones(kernel: str, ratio: int) -> None:
    features, rois = random_case(torch.float64, regions=4, channels=2)
    features = features[:, :, :6, :5].clone().requires_grad_()

    def align(x: Tensor) -> Tensor:
        return roi_align(x, rois, (3, 2), 1 / 16, ratio)

    assert torch.autograd.gradcheck(align, features)
    assert torch.autograd.gradgradcheck(align, features)


def test_a_line_is_read_exactly() -> None:
    """Where features grow by one a cell, the mean over a bin is its centre."""
    features = torch.arange(20.0, dtype=torch.float64).expand(1, 1, 20, 20)
    rois = torch.tensor([[0.0, 3.3, 2.0, 11.9, 9.0]], dtype=torch.float64)
    centres = 3.3 + (torch.arange(4) + 0.5) * (11.9 - 3.3) / 4
    torch.testing.assert_close(roi_align(features, rois, 4)[0, 0, 0], centres.double())


def test_weights_of_a_bin_inside_the_map_sum_to_one() -> None:
    rois = torch.tensor([[0.0, 1.2, 3.4, 9.1, 8.7]])
    _, rows, columns = align_weights(rois, (12, 11), 3, 2, 1.0, 2)
    assert rows.shape == (1, 3, 12) and columns.shape == (1, 2, 11)
    torch.testing.assert_close(rows.sum(-1), torch.ones(1, 3))
    torch.testing.assert_close(columns.sum(-1), torch.ones(1, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_summed_in_float32(kernel: str, dtype: torch.dtype) -> None:
    features, rois = random_case(torch.float32)
    halves = features.to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        values = roi_align(halves, rois.float(), 3, 1 / 8, 2)
    expected = roi_align(halves.detach().float(), rois.float(), 3, 1 / 8, 2)
    assert values.dtype == dtype
    torch.testing.assert_close(values, expected.to(dtype))
    values.sum().backward()
    assert halves.grad is not None and halves.grad.dtype == dtype


@pytest.mark.parametrize("ratio", [2, -1])
def test_corners_that_are_no_numbers_stay_inside_the_map(kernel: str, ratio: int) -> None:
    """A detector that diverges makes such boxes; a kernel must not read outside its memory for them."""
    if kernel == "as on a GPU" and ratio < 0:
        pytest.skip("torchvision refuses to read so many points on the CPU")
    corners = torch.tensor([0.0, 3.0, torch.nan, torch.inf, -torch.inf])
    rois = torch.cat([torch.zeros(5**4, 1), torch.cartesian_prod(*[corners] * 4)], dim=1)
    features = torch.rand(1, 3, 4, 5)
    values = roi_align(features, rois, 2, sampling_ratio=ratio).nan_to_num(0)
    assert values.any() and values.min() >= 0 and values.max() <= features.max() + 1e-6


def test_no_regions(kernel: str) -> None:
    features = torch.ones(1, 2, 3, 3, requires_grad=True)
    values = roi_align(features, torch.zeros(0, 5), 2)
    assert values.shape == (0, 2, 2, 2)
    values.sum().backward()
    assert features.grad is not None and not features.grad.any()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"`rois` must be \(R, 5\) float32 or float64, got \(2, 4\)"):
        roi_align(torch.zeros(1, 1, 4, 4), torch.zeros(2, 4), 2)
    with pytest.raises(ValueError, match=r"`rois\[:, 0\]` must be an image of this batch, 0 to 0, got 3"):
        roi_align(torch.zeros(1, 1, 4, 4), torch.tensor([[3.0, 0, 0, 1, 1]]), 2)


@pytest.mark.parametrize("channels_last", [False, True])
def test_operators_are_declared_as_they_behave(channels_last: bool) -> None:
    layout = torch.channels_last if channels_last else torch.contiguous_format
    features, rois = random_case(torch.float64, regions=5)
    rule = 3, 2, 0.125, 2, False
    features = features.contiguous(memory_format=layout).requires_grad_()
    torch.library.opcheck(operators.roi_align.default, (features, rois, *rule))
    grad = torch.randn(5, 5, 3, 2, dtype=torch.float64, requires_grad=True)
    arguments = grad, rois, list(features.shape), channels_last, *rule
    torch.library.opcheck(operators.roi_align_backward.default, arguments)


@pytest.mark.compiles
def test_compiles_without_a_graph_break() -> None:
    features, rois = random_case(torch.float32)

    def step(features: Tensor) -> Tensor:
        return roi_align(features * 2, rois, (4, 3), 1 / 8, 2).square().sum()

    eager, compiled = (features.clone().requires_grad_() for _ in range(2))
    step(eager).backward()
    torch.compile(step, backend="aot_eager", fullgraph=True)(compiled).backward()
    torch.testing.assert_close(eager.grad, compiled.grad)
