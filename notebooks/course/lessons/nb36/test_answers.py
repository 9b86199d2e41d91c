"""Answers to the exercises of notebook 36: right ones in an unusual form, and wrong ones that are nearly right."""

from answers import all_right, all_wrong
from torch.nn.functional import cross_entropy


def by_pattern(stage, stages, batches):
    early = min(stages - stage, batches)
    pairs = [slot for k in range(batches - early) for slot in (("B", k), ("F", early + k))]
    return [("F", k) for k in range(early)] + pairs + [("B", k) for k in range(batches - early, batches)]


def weighted_means(net, rows, labels, size):
    for start in range(0, len(rows), size):
        some, those = rows[start : start + size], labels[start : start + size]
        (cross_entropy(net(some), those) * len(some) / len(rows)).backward()


def row_by_row(net, rows, labels, size):
    for row, label in zip(rows, labels, strict=True):
        (cross_entropy(net(row[None]), label[None]) / len(rows)).backward()


def one_sum(net, rows, labels, size):
    losses = [
        cross_entropy(net(some), those, reduction="sum")
        for some, those in zip(rows.split(size), labels.split(size), strict=True)
    ]
    (sum(losses) / len(rows)).backward()


RIGHT = [
    ("36.one_forward_one_backward", by_pattern),
    ("36.one_forward_one_backward", lambda *given: tuple(by_pattern(*given))),
    ("36.accumulate", weighted_means),
    ("36.accumulate", row_by_row),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("36.accumulate", one_sum, "all at once"),
    (
        "36.one_forward_one_backward",
        lambda stage, stages, batches: by_pattern(stages - 1 - stage, stages, batches),
        None,
    ),
    ("36.accumulate", lambda net, rows, labels, size: cross_entropy(net(rows[:size]), labels[:size]).backward(), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
