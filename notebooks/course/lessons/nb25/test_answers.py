"""Answers to the exercises of notebook 25: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong


def by_removal(equation, letter):
    *terms, out = equation.replace("->", ",").split(",")
    names = {k for k in range(len(terms)) if not terms[k].count(letter)}
    return names if letter in out else names | {"out"}


def by_partition(equation, letter):
    inputs, _, out = equation.partition("->")
    found = tuple(k for k, term in enumerate(inputs.split(",")) if term.find(letter) < 0)
    return (*found, "out") if out.find(letter) < 0 else found


RIGHT = [
    ("25.added", by_removal),
    ("25.added", by_partition),
    ("25.per_class", lambda x, w: torch.bmm(x.transpose(0, 1), w.mT).transpose(0, 1)),
    ("25.per_class", lambda x, w: (w @ x.unsqueeze(3)).squeeze(3)),
    ("25.per_class", lambda x, w: torch.stack([x[:, n] @ w[n].T for n in range(len(w))], dim=1)),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("25.per_class", lambda x, w: torch.einsum("nbi,noi->bno", x, w), "one letter for batch and class"),
    ("25.added", lambda equation, letter: "out" if letter not in equation.split("->")[1] else [], None),
    ("25.added", lambda equation, letter: [0, 1], None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
