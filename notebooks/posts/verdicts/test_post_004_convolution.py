"""Post 004, an engineer's notes on PyTorch (2021): convolution as unfold, matmul and fold, run line by line."""

import importlib.util

import pytest
import torch
import torch.nn.functional as F
from verdict import verdict

from course.lessons.nb23.unfold_conv import overlap_counts

NOTEBOOK = "23_convolution_by_hand"


@pytest.fixture
def image():
    """A picture and eight filters of 3 x 4, as in the note's example, in float64."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.rand(2, 5, 9, 11, generator=generator, dtype=torch.float64)
    return pixels, torch.rand(8, 5, 3, 4, generator=generator, dtype=torch.float64)


@verdict(
    "004",
    "how PyTorch convolves",
    claim="conv2d = unfold + matmul + fold.",
    ruling="right",
    because="The three calls give `F.conv2d`'s values within 1e-10 in float64; for one output a position the last step "
    "is a reshape.",
    notebook=NOTEBOOK,
    words="conv2d = unfold + matmul + fold",
)
def test_convolution_is_unfold_matmul_fold(image):
    pixels, filters = image
    columns = F.unfold(pixels, (3, 4))
    product = filters.flatten(1) @ columns
    by_hand = F.fold(product, (9 - 3 + 1, 11 - 4 + 1), (1, 1))
    torch.testing.assert_close(by_hand, F.conv2d(pixels, filters), rtol=1e-10, atol=1e-10)


@verdict(
    "004",
    "how PyTorch convolves, a guess",
    claim="PyTorch's implementation is probably not very different from Caffe's, which unfolds and multiplies.",
    ruling="incomplete",
    because="On a CPU in float64 that is what it does: `_slow_conv2d_forward` allocates the whole matrix, nine times "
    "the image for 3 x 3. In float32 a library computes it where there is one, on Linux oneDNN, without a matrix.",
    notebook=NOTEBOOK,
    words="aten::_slow_conv2d",
)
def test_float64_unfolds_and_float32_need_not():
    largest, names = allocated(torch.float64)
    assert largest == 9 and "aten::_slow_conv2d_forward" in names
    if torch.backends.mkldnn.is_available():
        largest, names = allocated(torch.float32)
        assert largest == 1 and "aten::mkldnn_convolution" in names


def allocated(dtype):
    """The largest allocation within F.conv2d, in images, and the operators that it calls."""
    pixels, filters = torch.rand(1, 16, 64, 64, dtype=dtype), torch.rand(16, 16, 3, 3, dtype=dtype)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        F.conv2d(pixels, filters, padding=1)
    events = seen.events()
    return max(event.cpu_memory_usage for event in events) / pixels.nbytes, [event.name for event in events]


@verdict(
    "004",
    "how PyTorch convolves",
    claim="Windows of 3 x 4 over (N, C, H, W) give (H - 3 + 1) * (W - 4 + 1) windows of C * 3 * 4 numbers.",
    ruling="right",
    because="That is the shape of `F.unfold`, with stride 1 and no padding.",
    notebook=NOTEBOOK,
    words="`(H - 3 + 1) * (W - 4 + 1)` windows of 3 x 4",
)
def test_number_of_windows(image):
    pixels, _ = image
    assert F.unfold(pixels, (3, 4)).shape == (2, 5 * 3 * 4, (9 - 3 + 1) * (11 - 4 + 1))


@verdict(
    "004",
    "how PyTorch convolves",
    claim="fold is the opposite of unfold.",
    ruling="incomplete",
    because="In shape. In values fold *adds* what overlaps: fold(unfold(x)) is x times the number of windows "
    "that cover each pixel. Opposite they are where windows do not overlap, and as adjoints: each is the gradient of "
    "the other.",
    notebook=NOTEBOOK,
    words="`fold` *adds* what overlaps",
)
def test_fold_adds_what_overlaps(image):
    pixels, _ = image
    again = F.fold(F.unfold(pixels, (3, 4)), (9, 11), (3, 4))
    counts = overlap_counts((9, 11), (3, 4)).double()
    assert counts.max() == 12
    torch.testing.assert_close(again, pixels * counts, rtol=1e-10, atol=1e-10)
    apart = F.fold(F.unfold(pixels[..., :8], (3, 4), stride=(3, 4)), (9, 8), (3, 4), stride=(3, 4))
    assert torch.equal(apart, pixels[..., :8])


@verdict(
    "004",
    "how PyTorch convolves, the transpose",
    claim="Filter matrix times the transposed feature matrix is the output, Cout x (H x W).",
    ruling="right",
    because="The transpose is multiplied, so positions are rows in the text's feature matrix; `F.unfold` returns that "
    "transpose already.",
    notebook=NOTEBOOK,
    words="which transposes this matrix before it multiplies",
)
def test_filter_matrix_times_transposed_features(image):
    pixels, filters = image
    positions_as_rows = F.unfold(pixels, (3, 4)).transpose(1, 2)
    output = filters.flatten(1) @ positions_as_rows.transpose(1, 2)
    assert output.shape == (2, 8, 7 * 8)
    torch.testing.assert_close(output.view(2, 8, 7, 8), F.conv2d(pixels, filters), rtol=1e-10, atol=1e-10)


@verdict(
    "004",
    "how PyTorch convolves, the call",
    claim="`torch.nn.conv2d()` convolves.",
    ruling="typo",
    because="`torch.nn.functional.conv2d` is meant; `torch.nn` has the module `Conv2d` only.",
)
def test_conv2d_is_in_functional(image):
    assert not hasattr(torch.nn, "conv2d")
    assert F.conv2d(*image).shape == (2, 8, 7, 8)


@verdict(
    "004",
    "how PyTorch convolves, a guess",
    claim="PyTorch uses much of Caffe2.",
    ruling="right then",
    because="The two became one repository in 2018, and PyTorch's wheels held the package `caffe2` until late 2022 "
    "(pytorch/builder pull request 1181). Today's do not.",
)
def test_the_wheel_holds_no_caffe2():
    assert importlib.util.find_spec("caffe2") is None


@verdict(
    "004",
    "how PyTorch convolves",
    claim="Channels first or channels last, the mathematics is the same.",
    ruling="right",
    because="Values agree within 1e-10; the columns of the matrices stand in another order, and the memory format of "
    "the result follows the input's.",
    notebook=NOTEBOOK,
    words="as long as both factors use the same order",
)
def test_memory_format_changes_no_value(image):
    pixels, filters = image
    last = F.conv2d(pixels.contiguous(memory_format=torch.channels_last), filters)
    assert last.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last, F.conv2d(pixels, filters), rtol=1e-10, atol=1e-10)
