"""Numbers and statements in the prose of notebook 28 that no output shows, computed and run again."""

import re

import torch
from told import prose


def test_names_operators_that_raise_on_cuda():
    _, raising = torch.use_deterministic_algorithms.__doc__.split("will throw a", 1)
    entries = [" ".join(entry.split()) for entry in raising.split("        * ")]
    (sentence,) = re.findall(r"has the list, with (.+?) among them", prose("28"))
    for name in re.findall(r"`[\w.]+?(\w+)`", sentence):
        assert any(name in entry and "CUDA" in entry for entry in entries), name
