"""Answers to the exercises of notebook 15: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong


def check_align_in_four_bins(program):
    place = (16 * torch.arange(12.0) + 8).expand(1, 1, 12, 12)
    rois = torch.tensor([[0.0, 40, 24, 104, 120]])
    across = program(place, rois, 2, 1 / 16)[0, 0]
    down = program(place.mT.contiguous(), rois, 2, 1 / 16)[0, 0]
    torch.testing.assert_close(across, torch.tensor([[56.0, 88], [56, 88]]), atol=0.5, rtol=0)
    torch.testing.assert_close(down, torch.tensor([[48.0, 48], [96, 96]]), atol=0.5, rtol=0)


def backward_by_autograd(plane, bins, grad):
    leaf = plane.clone().requires_grad_()
    found = [leaf[t:b, l:r].flatten().max(dim=0).values if t < b and l < r else leaf.sum() * 0 for t, b, l, r in bins]  # noqa: E741
    return torch.autograd.grad((torch.stack(found) * grad).sum(), leaf)[0]


def check_align_on_a_constant_map(program):
    rois = torch.tensor([[0.0, 20, 20, 60, 70]])
    assert (program(torch.ones(1, 1, 8, 8), rois, 2, 1 / 16) == 1).all()


def backward_of_amax(plane, bins, grad):
    leaf = plane.clone().requires_grad_()
    found = [leaf[t:b, l:r].amax() if t < b and l < r else leaf.sum() * 0 for t, b, l, r in bins]  # noqa: E741
    return torch.autograd.grad((torch.stack(found) * grad).sum(), leaf)[0]


RIGHT = [
    ("15.check_align", check_align_in_four_bins),
    ("15.roi_pool_backward", backward_by_autograd),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("15.check_align", check_align_on_a_constant_map, "one value to the last bit"),
    ("15.roi_pool_backward", backward_of_amax, "ties split"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
