"""An einsum equation read aloud: the loops that it prints compute what einsum computes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course.lessons.nb25.einsum_explain import explain


def run_loop_nest(reading, *tensors):
    """Execute the printed loops."""
    namespace = {}
    exec(reading.loop_nest(), namespace)
    out = torch.zeros(reading.output_shape, dtype=torch.float64)
    namespace["contract"](*tensors, out)
    return out


@st.composite
def equations(draw):
    letters, sizes = "abcd", {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    terms = [draw(st.text(letters, min_size=0, max_size=3)) for _ in range(draw(st.integers(1, 3)))]
    used = sorted(set("".join(terms)))
    output = "".join(draw(st.lists(st.sampled_from(used), unique=True))) if used else ""
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    return f"{','.join(terms)}->{output}", shapes


@given(equations())
@settings(max_examples=80, deadline=None)
def test_the_printed_loops_compute_what_einsum_computes(case):
    equation, shapes = case
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    reading = explain(equation, *shapes)
    expected = torch.einsum(equation, *tensors)
    assert reading.output_shape == expected.shape
    torch.testing.assert_close(run_loop_nest(reading, *tensors), expected, rtol=1e-10, atol=1e-10)


def test_reading_names_the_fate_of_every_letter():
    reading = explain("bgi,gio->bgo", (2, 3, 4), (3, 4, 5))
    assert [(i.name, i.size, i.summed) for i in reading.indices] == [
        ("b", 2, False),
        ("g", 3, False),
        ("o", 5, False),
        ("i", 4, True),
    ]
    assert reading.output_shape == (2, 3, 5)
    assert reading.multiply_adds == math.prod((2, 3, 4, 5))
    assert "i (4): in A and B, summed away: a dot product runs along it" in reading.read_aloud()


def test_a_stretched_axis_is_pointed_out():
    reading = explain("gik,gkj->gij", (1, 64, 64), (64, 64, 16))
    assert reading.output_shape == (64, 64, 16)
    assert reading.indices[0].stretched == (0,)
    assert "careful: A has 1 here, stretched to 64" in reading.read_aloud()
    small = [torch.randn(1, 4, 4, dtype=torch.float64), torch.randn(4, 4, 2, dtype=torch.float64)]
    expected = torch.einsum("gik,gkj->gij", *small)
    torch.testing.assert_close(run_loop_nest(explain("gik,gkj->gij", (1, 4, 4), (4, 4, 2)), *small), expected)


def test_output_left_out_is_the_letters_that_occur_once():
    assert explain("ij,jk", (2, 3), (3, 4)).equation == "ij,jk->ik"
    assert explain("ii", (3, 3)).equation == "ii->"


@pytest.mark.parametrize(
    ("equation", "shapes", "words"),
    [
        ("gik,gkj->gij", ((2, 12, 512), (512, 12, 64)), "expected one size for g, got 2 in A, 512 in B"),
        ("ij,jk->ik", ((2, 3),), "expected 2, one for each of"),
        ("ij->i", ((2, 3, 4),), r"expected 2 axes \(ij\) for operand A, got \(2, 3, 4\)"),
        ("ij->ik", ((2, 3),), "expected each output letter once, from an input, got k"),
        ("ij->ii", ((2, 3),), "got i in ii"),
        ("...i->i", ((2, 3),), "expected letters, commas"),
    ],
)
def test_errors_name_what_came(equation, shapes, words):
    with pytest.raises(ValueError, match=words):
        explain(equation, *shapes)
