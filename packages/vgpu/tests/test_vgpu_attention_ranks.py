"""Attention over several ranks: heads cut by tensor parallel, and a sequence cut by context parallel."""

import pytest
import vgpu_attention_ranks
from vgpu_group import on_ranks

pytest.importorskip("numpy", reason="context_parallel imports it")

pytestmark = [
    pytest.mark.usefixtures("gpus"),
    pytest.mark.filterwarnings("ignore:virtual GPUs have no NCCL"),
]


def test_on_two_ranks():
    on_ranks(vgpu_attention_ranks.on_two)


def test_on_four_ranks():
    on_ranks(vgpu_attention_ranks.on_four, ranks=4)
