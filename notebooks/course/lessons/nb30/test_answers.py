"""Answers to the exercises of notebook 30: right ones in an unusual form, and wrong ones that are nearly right."""

from answers import all_right, all_wrong

RIGHT = [
    (
        "30.bare_names",
        lambda names: tuple(n[7:] for n in names) if all(n.startswith("module.") for n in names) else tuple(names),
    ),
    ("30.left_over", lambda model, file: [[n for n in model if n not in file], [n for n in file if n not in model]]),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("30.from_paddle", lambda layer, weight: weight.t_() if layer == "Linear" else weight, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
