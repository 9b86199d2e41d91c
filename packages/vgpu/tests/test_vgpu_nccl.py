"""A process group that asks for NCCL: its labels, what it refuses as NCCL does, and what it has that gloo has not."""

import pytest
import vgpu_nccl
from vgpu_group import on_ranks

pytestmark = pytest.mark.usefixtures("gpus")


def test_a_group_goes_by_the_rules_of_nccl():
    on_ranks(vgpu_nccl.everything)


def test_a_rank_on_the_gpu_of_another_one():
    on_ranks(vgpu_nccl.devices)


def test_ranks_that_see_one_gpu_each():
    on_ranks(vgpu_nccl.visible, backend=None)
