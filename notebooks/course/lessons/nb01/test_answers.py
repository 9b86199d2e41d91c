"""Answers to the exercises of notebook 01: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
from answers import all_right, all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def share_a_clone(x2, like):
    return x2.clone().expand(len(like), *x2.shape[1:])


def by_first_and_last(step, alone, images):
    out, right = step(images), alone(images)
    assert len(out) == len(right)
    torch.testing.assert_close(out[[0, -1]], right[[0, -1]])


def by_one_pixel(step, alone, images):
    out, right = step(images), alone(images)
    assert out.shape == right.shape
    torch.testing.assert_close(out[:, 0, 0, 0], right[:, 0, 0, 0])


def by_rows(step, alone, images):
    for mine, right in zip(step(images), alone(images), strict=True):
        assert mine.tolist() == pytest.approx(right.tolist()) if mine.dim() == 1 else torch.allclose(mine, right)


RIGHT = [
    ("01.share", lambda x2, like: x2[0].expand(len(like), *x2.shape[1:])),
    ("01.share", lambda x2, like: torch.broadcast_to(x2, (len(like), *x2.shape[1:]))),
    ("01.test_step", by_rows),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("01.share", lambda x2, like: x2.detach().expand(len(like), *x2.shape[1:]), "cuts the graph"),
    ("01.share", share_a_clone, "copies"),
    ("01.share", lambda x2, like: x2.to(like.device).expand(len(like), *x2.shape[1:]), None),
    ("01.test_step", by_first_and_last, None),
    ("01.test_step", by_one_pixel, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
