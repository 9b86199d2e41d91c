"""Answers to the exercises of notebook 20: right ones in an unusual form, and wrong ones that are nearly right."""

import copy

import torch
from answers import all_right, all_wrong

from course.lessons.nb20.puzzles.left_alone import a_name_that_begins_another


def left_alone_by_a_copy(model, step):
    before = copy.deepcopy(model)
    step()
    pairs = zip(model.named_children(), before.children(), strict=True)
    return [n for (n, new), old in pairs if all(map(torch.equal, new.parameters(), old.parameters()))]


def left_alone_by_sums_of_squares(model, step):
    def squares():
        return {n: [p.square().sum().item() for p in child.parameters()] for n, child in model.named_children()}

    before = squares()
    step()
    after = squares()
    return [name for name in after if after[name] == before[name]]


def left_alone_after_two_steps(model, step):
    return left_alone_by_a_copy(model, lambda: (step(), step()))


def check_resume_by_the_last_loss(run):
    assert run(stop=7)[-1] == run()[-1]


RIGHT = [
    ("20.left_alone", left_alone_by_a_copy),
    ("20.check_resume", check_resume_by_the_last_loss),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("20.left_alone", a_name_that_begins_another, "a name that begins another"),
    ("20.left_alone", left_alone_by_sums_of_squares, "one number for each part"),
    ("20.left_alone", left_alone_after_two_steps, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
