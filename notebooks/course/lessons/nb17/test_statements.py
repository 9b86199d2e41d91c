"""Errors that notebook 17 prints and a stand-in has raised."""

from told import notebook


def test_says_which_errors_are_acted_out():
    texts = ["".join(o.get("text", "") for o in c.outputs if o.output_type == "stream") for _, c in notebook("17").code]
    with_errors = [text for text in texts if "CUDA_ERROR" in text]
    assert with_errors and all("acted out by the stand-in for CuPy" in text for text in with_errors)
