import random

import pytest
import torch

from frcnn_lite.recipes.determinism import deterministic, same_bits, seed_everything


def test_a_seed_repeats_what_python_and_torch_draw():
    drawn = []
    for _ in range(2):
        seed_everything(7)
        drawn.append([random.random(), torch.rand(3)])
    assert same_bits(*drawn) and not same_bits(drawn[0], [random.random(), torch.rand(3)])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_numpy_cannot_take(seed):
    with pytest.raises(ValueError, match=r"between 0 and 2\*\*32 - 1"):
        seed_everything(seed)


def test_the_switch_is_put_back():
    def settings():
        cudnn = torch.backends.cudnn
        return cudnn.deterministic, cudnn.benchmark, torch.get_deterministic_debug_mode()

    before = settings()
    with pytest.raises(KeyError), deterministic():
        assert settings() == (True, False, 2)
        with deterministic(warn_only=True):
            assert settings() == (True, False, 1)
        assert settings() == (True, False, 2)
        raise KeyError
    assert settings() == before


def test_an_operator_without_a_deterministic_form_is_refused():
    x = torch.zeros(4)
    with deterministic(), pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
        x.put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))


class TestSameBits:
    def test_nan_and_signed_zero(self):
        nan = torch.tensor([1.0, float("nan")])
        assert same_bits(nan, nan.clone()) and not torch.equal(nan, nan.clone())
        report = same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
        assert not report and "1 of 1 elements differ" in str(report)
        assert not same_bits(0.0, -0.0) and same_bits(float("nan"), float("nan"))

    def test_the_last_bit(self):
        a = torch.ones(5)
        b = a.clone()
        b[3] = torch.nextafter(b[3], torch.tensor(2.0))
        report = same_bits({"layer": {"weight": a}}, {"layer": {"weight": b}})
        assert report.differences == ("layer.weight: 1 of 5 elements differ, by 1.2e-07 at most",)
        assert torch.allclose(a, b)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.bool])
    def test_dtypes_layouts_and_no_elements(self, dtype):
        x = torch.arange(6).reshape(2, 3).to(dtype)
        assert same_bits(x.T, x.T.contiguous()) and same_bits(x[:0], x[:0]) and same_bits(x[1, 1], x[1, 1].clone())
        assert not same_bits(x, x.flip(0))

    def test_conjugate_views(self):
        z = torch.tensor([1 + 2j])
        assert same_bits(z.conj(), z.conj().resolve_conj()) and not same_bits(z, z.conj())

    @pytest.mark.parametrize(
        ("a", "b", "words"),
        [
            (torch.zeros(2), torch.zeros(3), "(2,) torch.float32 and (3,) torch.float32"),
            (torch.zeros(2), torch.zeros(2).double(), "torch.float64"),
            ([1, 2], [1], "lengths 2 and 1"),
            ({"a": 1}, {"b": 1}, "keys ['a'] and ['b']"),
            ([1, "x"], [1, "y"], "[1]: 'x' and 'y'"),
            (1, 1.0, "a int and a float"),
            (None, torch.zeros(1), "NoneType"),
        ],
    )
    def test_what_is_not_alike_is_named(self, a, b, words):
        assert words in str(same_bits(a, b))

    def test_what_cannot_be_compared(self):
        with pytest.raises(TypeError, match="got set"):
            same_bits({1}, {1})
        with pytest.raises(TypeError, match="dense tensors"):
            same_bits(torch.zeros(2).to_sparse(), torch.zeros(2).to_sparse())
