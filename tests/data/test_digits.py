import hashlib
import math
import sys

import numpy as np
import pytest

from frcnn_lite.data import draw_glyph, load_glyphs
from frcnn_lite.data.digits import _cubic_matrix, read_digits
from frcnn_lite.data.photographs import TEST_COLUMNS, load_photographs


def test_the_files_of_scikit_learn_are_read_as_it_reads_them_and_without_it(monkeypatch):
    from sklearn.datasets import load_digits, load_sample_images

    expected, pictures = load_digits(), load_sample_images().images
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)  # an import of it would fail from here on
    load_photographs.cache_clear()
    images, labels = read_digits()
    assert np.array_equal(images, expected.images) and np.array_equal(labels, expected.target)
    read = load_photographs("test")
    assert len(read) == len(pictures)
    for found, picture in zip(read, pictures, strict=True):
        assert np.array_equal(found, picture[:, -TEST_COLUMNS:].transpose(2, 0, 1))


def test_the_two_splits_hold_all_digits_and_share_none():
    from sklearn.datasets import load_digits

    train, test = load_glyphs("train"), load_glyphs("test")
    assert np.array_equal(np.concatenate([train.labels, test.labels]), load_digits().target)
    seen = {field.tobytes() for field in train.fields}
    assert not any(field.tobytes() in seen for field in test.fields)


def test_fields_are_densities_that_fade_out_at_the_border():
    fields = load_glyphs("test").fields
    assert fields.dtype == np.float32 and fields.shape[1:] == (40, 40)
    assert fields.min() == 0 and fields.max() == 1
    assert max(fields[:, [0, -1]].max(), fields[:, :, [0, -1]].max()) < 0.01  # no ink: strokes begin at 0.38


def test_cubic_interpolation_reproduces_a_parabola():
    # Keys (1981): with a = -1/2 the kernel is exact for polynomials of the second degree.
    matrix = _cubic_matrix(10, 4)
    places = (np.arange(40) + 0.5) / 4 - 0.5
    inner = (places >= 1) & (places <= 8)
    np.testing.assert_allclose((matrix @ np.arange(10.0) ** 2)[inner], places[inner] ** 2, atol=1e-12)


@pytest.mark.parametrize("angle", [-0.3, 0.0, 0.2])
def test_ink_touches_all_four_sides_of_its_array(angle):
    for field in load_glyphs("train").fields[:40]:
        ink = draw_glyph(field, 30.0, angle) >= 128
        assert ink[0].any() and ink[-1].any() and ink[:, 0].any() and ink[:, -1].any()


def test_size_follows_height_and_a_quarter_turn_is_exact():
    field = load_glyphs("train").fields[0]
    small, large = draw_glyph(field, 20.0, 0.0), draw_glyph(field, 40.0, 0.0)
    assert np.allclose(np.array(large.shape), 2 * np.array(small.shape), atol=2)
    turned = draw_glyph(field, 40.0, math.pi / 2)
    difference = np.abs(turned.astype(int) - np.rot90(large, -1).astype(int))
    assert turned.shape == large.shape[::-1] and difference.max() <= 2


def test_a_glyph_is_the_same_everywhere():
    # No image library and no photograph takes part in this, so the bytes are equal on every platform.
    glyphs = load_glyphs("train")
    digest = hashlib.sha256()
    for k in range(10):
        digest.update(draw_glyph(glyphs.fields[k], 24.0 + 2 * k, 0.06 * k - 0.3).tobytes())
    assert digest.hexdigest()[:16] == "032eeb1479e1dd5e"
