"""Deterministic algorithms, and dtypes that CUDA has and the CPU has not, as a card was found to have them."""

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("gpus")
ONE = torch.device("cuda:1")


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def pooled() -> torch.Tensor:
    """The loss of a layer whose backward has no deterministic kernel."""
    return nn.functional.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4, device=ONE, requires_grad=True), 2).sum()


def test_an_operator_without_a_deterministic_kernel_raises_where_it_runs(deterministic):
    loss = pooled()
    with pytest.raises(RuntimeError, match=r"^adaptive_avg_pool2d_backward_cuda does not have a deterministic impl"):
        loss.backward()


def test_or_warns_where_that_was_asked_for(deterministic):
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=r"_cuda does not have .* but you set .*\(True, warn_only=True\)"):
        pooled().backward()


def test_what_has_a_deterministic_way_for_some_arguments_is_asked_for_them(deterministic):
    values = torch.tensor([1, 2, 2], device=ONE)
    assert torch.bincount(values).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"^_bincount_cuda"):
        torch.bincount(values, weights=torch.ones(3, device=ONE))


def test_sines_of_half_complex_numbers_are_those_of_complex_numbers():
    values = torch.tensor([0.5 + 1j, 2 - 1j], dtype=torch.complex32)
    found = values.to(ONE).sin()
    assert (found.dtype, found.device) == (torch.complex32, ONE)
    torch.testing.assert_close(found.cpu().to(torch.complex64), values.to(torch.complex64).sin(), atol=2e-3, rtol=2e-3)


def test_a_transform_in_half_precision_needs_sizes_that_are_powers_of_two():
    signal = torch.randn(8, device=ONE)
    found = torch.fft.rfft(signal.half())
    assert found.dtype is torch.complex32
    torch.testing.assert_close(found.to(torch.complex64), torch.fft.rfft(signal), atol=2e-2, rtol=2e-2)
    with pytest.raises(RuntimeError, match=r"powers of two .* signal size of\[6\]"):
        torch.fft.rfft(torch.ones(6, device=ONE).half())
    with pytest.raises(RuntimeError, match=r"powers of two .* signal size of\[6\]"):
        torch.fft.fft(torch.ones(6, device=ONE).half())


def test_in_place_the_wide_result_is_written_back():
    values = torch.tensor([0.5 + 1j], dtype=torch.complex32, device=ONE)
    assert values.exp_() is values and values.dtype is torch.complex32
    torch.testing.assert_close(values.cpu().to(torch.complex64), torch.tensor([0.5 + 1j]).exp(), atol=2e-3, rtol=2e-3)
