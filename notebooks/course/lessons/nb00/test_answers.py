"""Answers to the exercises of notebook 00: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
from answers import all_right, all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def moves_the_callers(x, k):
    x.data = x.data.cuda(k)
    return x


def entered(x, k):
    with torch.cuda.device(k):
        return x.cuda()


RIGHT = [
    ("00.a_row_for_each", lambda query, digits: query.repeat(len(digits), 1)),
    ("00.a_row_for_each", lambda query, digits: torch.cat([query] * len(digits))),
    ("00.on_gpu", lambda x, k: x.to(k)),
    ("00.on_gpu", entered),
    ("00.on_gpu", lambda x, k: torch.empty_like(x, device=f"cuda:{k}", requires_grad=False).copy_(x)),
    ("00.beside", lambda anchors, features: anchors.to(features.device, copy=True)),
    ("00.beside", lambda anchors, features: anchors.type_as(anchors.new_zeros(1, device=features.device))),
    ("00.idle_gpus", lambda rows, gpus: gpus - len(torch.zeros(rows).chunk(gpus))),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("00.a_row_for_each", lambda query, digits: query.expand(6, -1), None),
    ("00.a_row_for_each", lambda query, digits: query.data.expand(len(digits), -1), "cuts the graph"),
    ("00.a_row_for_each", lambda query, digits: query.expand_as(digits), None),
    ("00.on_gpu", lambda x, k: torch.tensor(x.tolist(), device=k), "cuts the graph"),
    ("00.on_gpu", lambda x, k: x.float().cuda(k), None),
    ("00.on_gpu", moves_the_callers, "cuts the graph"),
    ("00.beside", lambda anchors, features: anchors.to(features), "the type as well"),
    ("00.beside", lambda anchors, features: features.new_tensor(anchors.tolist()), "the type as well"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
