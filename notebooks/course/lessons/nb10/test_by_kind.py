"""What is counted for a GPU, and what is not; notebook 10 holds the plans on real ranks."""

import pytest
import torch
from torch import nn

from course.lessons.nb10.by_kind import OWN, by_kind

pytestmark = pytest.mark.virtual_gpus(1)
BYTES = 64 * 64 * 4  # of the weight


def test_a_step_holds_four_numbers_for_each_weight_and_what_its_rows_need():
    found = by_kind(lambda net: net.cuda(), nn.Linear(64, 64, bias=False), torch.ones(32, 64, device="cuda"))
    assert (found["weights"], found["gradients"], found["optimizer"]) == (BYTES, BYTES, 2 * BYTES)
    assert found["activations"] >= 32 * 64 * 4 and found[OWN] == 0


def test_what_is_on_the_cpu_does_not_count():
    assert not any(by_kind(lambda net: net, nn.Linear(64, 64, bias=False), torch.ones(32, 64)).values())
