"""Numbers and statements in the prose of notebook 28 that no output shows, computed and run again."""

import inspect

import torch
from told import prose, says
from torch.utils.data import DataLoader

_, *LISTS = torch.use_deterministic_algorithms.__doc__.split("normally-nondeterministic operations will")
REPEATS, RAISES = ([" ".join(entry.split()) for entry in part.split("        * ")] for part in LISTS)


def listed(entries, *words):
    return any(all(word in entry for word in words) and "CUDA" in entry for entry in entries)


def test_the_table_says_what_the_documentation_lists():
    assert all(listed(REPEATS, name) for name in ("index_add", "scatter_add_", "cumsum", "nn.Embedding", "MaxPool3d"))
    raising = ("put_", "median", "bincount", "NLLLoss", "CTCLoss", "grid_sample", "ReflectionPad2d")
    assert all(listed(RAISES, name) for name in raising)
    assert all(listed(RAISES, "interpolate", mode) for mode in ("bilinear", "bicubic"))
    assert not any("roi" in entry for entry in REPEATS + RAISES)
    assert "| gradient of `MaxPool3d` | repeats | **raises** |" in prose("28")


def test_bilinear_interpolation_takes_a_slower_form_in_deterministic_mode():
    source = inspect.getsource(torch.nn.functional.interpolate)
    assert "not input.is_cpu and torch.are_deterministic_algorithms_enabled()" in source
    assert "_upsample_linear_vec" in source
    assert says("28", "Bilinear `interpolate` takes a slower form in this mode, whose gradient repeats")


def test_a_pass_without_a_generator_of_its_own_shifts_what_follows():
    def after_a_pass(**arguments):
        torch.manual_seed(404)
        list(DataLoader(range(4), **arguments))
        return torch.rand(2)

    torch.manual_seed(404)
    undisturbed = torch.rand(2)
    assert not torch.equal(after_a_pass(), undisturbed)
    assert torch.equal(after_a_pass(generator=torch.Generator()), undisturbed)
    assert says("28", "Give the loader a `generator=` of its own.")
