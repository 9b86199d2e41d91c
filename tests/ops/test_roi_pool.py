"""roi_pool against torchvision and numerical gradients, compiled for the CPU and without a compiled form."""

import sys

import pytest
import torch
from torch import Tensor

from frcnn_lite.ops.roi_pool import roi_bins, roi_pool, roi_pool_with_argmax

# Not `frcnn_lite.ops.roi_pool`, which to an import statement is the function; and in a copy the module lies elsewhere.
module = sys.modules[roi_pool.__module__]
operators = getattr(torch.ops, module.NAMESPACE)


@pytest.fixture(params=["compiled", "torchvision", "as on a GPU"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "as on a GPU":
        pytest.importorskip("torchvision")
        monkeypatch.setattr(module, "takes_regions", lambda device: True)
    elif request.param == "torchvision":
        pytest.importorskip("torchvision")
        monkeypatch.setattr(module, "compiled", lambda name: None)
    elif module.compiled("numba_roi_pool") is None:
        pytest.skip("no compiled form here")
    return request.param


def values_and_argmax(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float) -> tuple[Tensor, Tensor]:
    return operators.roi_pool(features, rois, ph, pw, scale)


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
@pytest.mark.parametrize("content", ["distinct", "tied", "not finite"])
def test_equals_torchvision_bit_for_bit(kernel: str, dtype: torch.dtype, content: str) -> None:
    pytest.importorskip("torchvision")
    features, rois = random_case(dtype, rois=300, channels=70)
    if content == "tied":
        features = (features * 2).round()
    if content == "not finite":
        features = features.where(features < 0.3, torch.nan).where(features > -0.3, -torch.inf)
    ours, theirs = features.clone().requires_grad_(), features.clone().requires_grad_()
    values, argmax = values_and_argmax(ours, rois, 7, 5, 1 / 8)
    expected_values, expected_argmax = torch.ops.torchvision.roi_pool(theirs, rois, 1 / 8, 7, 5)
    assert torch.equal(values, expected_values) and torch.equal(argmax, expected_argmax)
    gradient = torch.randn(values.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    values.backward(gradient)
    expected_values.backward(gradient)
    assert ours.grad is not None and theirs.grad is not None
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12 if dtype == torch.float64 else 1e-5, atol=1e-6)


@pytest.mark.parametrize(("height", "bins"), [(57, 7), (57, 14)])
def test_bin_edges_are_float32_products(kernel: str, height: int, bins: int) -> None:
    """For these sizes an end computed in float32 lies one row beyond the exact one, as in Caffe and torchvision."""
    features = torch.arange(70.0).view(1, 1, 70, 1)
    rois = torch.tensor([[0.0, 0.0, 0.0, 0.0, height - 1.0]])
    values, _ = values_and_argmax(features, rois, bins, 1, 1.0)
    exact = torch.tensor([-(-(i + 1) * height // bins) - 1 for i in range(bins)])
    assert set((values.flatten() - exact).tolist()) == {0.0, 1.0}
    pytest.importorskip("torchvision")
    assert torch.equal(values, torch.ops.torchvision.roi_pool(features, rois, 1.0, bins, 1)[0])


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_halves_are_pooled_as_they_are(kernel: str, dtype: torch.dtype, layout: torch.memory_format) -> None:
    features, rois = random_case(torch.float32)
    halves = features.to(dtype).contiguous(memory_format=layout).requires_grad_()
    values, argmax = values_and_argmax(halves, rois, 4, 3, 1 / 8)
    expected = values_and_argmax(halves.detach().float(), rois, 4, 3, 1 / 8)
    assert values.dtype == dtype and torch.equal(values.float(), expected[0]) and torch.equal(argmax, expected[1])
    values.sum().backward()
    assert halves.grad is not None and halves.grad.dtype == dtype
    assert halves.grad.is_contiguous(memory_format=layout)
    assert halves.grad.sum(dtype=torch.float32) == (argmax >= 0).sum()


def test_argmax_takes_only_the_bytes_it_needs(kernel: str) -> None:
    features, rois = random_case(torch.float32)
    pool = operators.roi_pool
    (values, wide), (_, narrow), (_, none) = (pool(features, rois, 4, 3, 1 / 8, bits) for bits in (32, 16, 0))
    assert (wide.dtype, narrow.dtype, none.numel()) == (torch.int32, torch.int16, 0)
    assert torch.equal(wide, narrow.int())
    assert torch.equal(roi_pool(features, rois, (4, 3), 1 / 8), values)
    assert all(map(torch.equal, roi_pool_with_argmax(features, rois, (4, 3), 1 / 8), (values, wide)))


def test_a_map_beyond_sixteen_bits(kernel: str) -> None:
    features = torch.zeros(1, 1, 200, 200).index_fill_(2, torch.tensor([180]), 1.0).requires_grad_()
    roi_pool(features, torch.tensor([[0.0, 7.0, 150.0, 7.0, 190.0]]), 1).sum().backward()
    assert features.grad is not None and features.grad.nonzero().tolist() == [[0, 0, 180, 7]]


def test_second_gradient_is_the_numerical_one(kernel: str) -> None:
    order = torch.randperm(2 * 3 * 7 * 6, generator=torch.Generator().manual_seed(2))
    features = (order.double() / 10).view(2, 3, 7, 6).requires_grad_()
    rois = torch.tensor([[0, 0, 0, 4, 5], [1, 1, 2, 5, 6], [1, -3, 2, 9, 3]], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda x: roi_pool(x, rois, (3, 2)), features)


def test_what_kept_no_argmax_has_no_gradient(kernel: str) -> None:
    features, rois = random_case(torch.float32)
    values, _ = operators.roi_pool(features.requires_grad_(), rois, 4, 3, 1 / 8, 0)
    with pytest.raises(RuntimeError, match="argmax_bits=0"):
        values.sum().backward()


def test_corners_that_are_no_numbers_stay_inside_the_map(kernel: str) -> None:
    """A detector that diverges makes such boxes; a kernel must not read outside its memory for them."""
    corners = torch.tensor([0.0, 3.0, torch.nan, torch.inf, -torch.inf, 1e30, -1e30])
    rois = torch.cat([torch.zeros(7**4, 1), torch.cartesian_prod(*[corners] * 4)], dim=1)
    images, rows, columns = roi_bins(rois, (4, 5), 2, 3, 1.0)
    assert not images.any() and rows.min() >= 0 and rows.max() <= 4 and columns.min() >= 0 and columns.max() <= 5
    values, argmax = values_and_argmax(torch.rand(1, 3, 4, 5), rois, 2, 3, 1.0)
    assert argmax.min() == -1 and argmax.max() < 20 and values.isfinite().all()


@pytest.mark.parametrize("image", [1, -1])
def test_an_image_outside_the_batch_is_named(kernel: str, image: int) -> None:
    with pytest.raises(ValueError, match=rf"`rois\[:, 0\]` must be an image of this batch, 0 to 0, got {image}"):
        roi_pool(torch.zeros(1, 1, 4, 4), torch.tensor([[float(image), 0.0, 0.0, 2.0, 2.0]]), 2)


def test_wrong_arguments_are_named() -> None:
    features, rois = torch.zeros(1, 1, 4, 4), torch.zeros(2, 5)
    with pytest.raises(ValueError, match=r"`features` must be \(N, C, H, W\) floating, got \(1, 1, 4, 4\) torch.int64"):
        roi_pool(features.long(), rois, 2)
    with pytest.raises(ValueError, match=r"`rois` must be \(R, 5\) float32 or float64, got \(2, 4\)"):
        roi_pool(features, rois[:, 1:], 2)
    with pytest.raises(ValueError, match=r"`output_size` must be positive, got \(2, 0\)"):
        roi_pool(features, rois, (2, 0))


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_operator_keeps_the_promises_it_registers(channels_last: bool) -> None:
    features, rois = random_case(torch.float64, rois=5)
    if channels_last:
        features = features.contiguous(memory_format=torch.channels_last)
    torch.library.opcheck(operators.roi_pool, (features.requires_grad_(), rois, 3, 2, 0.125))
