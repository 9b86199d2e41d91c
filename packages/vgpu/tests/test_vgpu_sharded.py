"""FSDP2, DTensor, tensor parallel and distributed checkpoints on virtual GPUs compute what one process computes."""

import pytest
import vgpu_sharded
from vgpu_group import on_ranks, on_threads

pytestmark = [
    pytest.mark.usefixtures("gpus"),
    pytest.mark.filterwarnings("ignore:virtual GPUs have no NCCL"),
]


def test_on_two_ranks():
    pytest.importorskip("numpy", reason="PyTorch's collectives of objects need it")
    on_threads(vgpu_sharded.on_two, backend="cpu:gloo,cuda:nccl")


# Ranks that are threads split their groups in a way of their own.
@pytest.mark.parametrize("start", [on_threads, pytest.param(on_ranks, marks=pytest.mark.exhaustive)])
def test_on_a_mesh_of_two_by_two(start):
    start(vgpu_sharded.on_four, ranks=4)
