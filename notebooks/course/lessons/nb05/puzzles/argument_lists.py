"""For each blob, a dict, the list of its values in the order of `names`, the arguments of forward."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "One list for each blob, so one for each device.",
    "The order is that of `names`, whatever the order of the dict; nothing is left out.",
    "`[[blob[name] for name in names] for blob in blobs]`",
)


def argument_lists(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[blob[name] for name in names] for blob in blobs]


def cases(random: Random) -> Sequence[Case]:
    """The arguments of the guide, then others in other orders: each case is a different `forward`."""
    names = ["im_data", "im_info", "gt_boxes", "gt_ishard", "dontcare_areas"]
    cases = []
    for k, gpus in enumerate((1, 2, 4, *(random.randint(2, 8) for _ in range(5)))):
        keys = random.sample(names, len(names))  # a loader need not build its dict in the order of the signature
        blobs = [{key: f"{key} {random.randrange(1000)}" for key in keys} for _ in range(gpus)]
        cases.append(Case((blobs, names if k < 3 else random.sample(names, random.randint(2, 5)))))
    return cases


def _same_lists(given: Any, expected: Sequence[Sequence[Any]]) -> bool:
    """Lists or tuples, which `parallel_apply` takes for arguments; it takes anything else for one argument."""
    mine = [list(part) if isinstance(part, tuple) else part for part in given]
    return mine == expected and len(given) == len(expected)


def _are_iterators(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Right values, in something else than lists. (An iterator that has been read is empty.)"""
    return all(
        isinstance(lists, Iterator) or any(not isinstance(part, list | tuple | dict | str) for part in lists)
        for lists in given
    )


agree = _same_lists


@wrong
def without_the_first(blobs, names):
    """these are the arguments without the first. Every other then moves up by one, and forward takes the second for the
    first.

    Source: the loop of the guide to a multi-GPU Faster R-CNN, about 2017
    """
    return [[blob[name] for name in names[1:]] for blob in blobs]


@wrong
def in_the_order_of_the_dict(blobs, names):
    """these are the values in an order that is not that of `names`: the order of the dict, of the alphabet, or of one
    list that is written out. A loader may build a dict in any order; forward takes its arguments in the order of its
    signature, which is `names`.

    Source: what code42/code42cli pull request 27, 2020, repairs in a command line
    """
    return [[*blob.values()] for blob in blobs]


@also(in_the_order_of_the_dict)
def in_the_order_of_the_dict_(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[value for name, value in blob.items() if name in names] for blob in blobs]


@also(in_the_order_of_the_dict)
def _(blobs, names):
    return [[blob[name] for name in sorted(names)] for blob in blobs]


@wrong
def one_list_for_each_argument(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    """this is one list for each argument. `parallel_apply` takes one for each replica: it counts them.

    Source: the assertion asked about in zhanghang1989/PyTorch-Encoding issue 202, 2019
    """
    return [[blob[name] for blob in blobs] for name in names]


@wrong
def dicts(blobs, names):
    """this is a dict for each replica. `parallel_apply` calls `module(*arguments)` with each list; dicts of arguments
    by name are its third parameter, `kwargs_tup`.
    """
    return [{name: blob[name] for name in names} for blob in blobs]


@wrong
def one_list_for_all(blobs, names):
    """this is one list with the arguments of all devices. `parallel_apply` takes a list *of lists*, one for each
    replica.
    """
    return [blob[name] for blob in blobs for name in names]


@wrong(recognise=_are_iterators)
def iterators(blobs, names):
    """the values are right, and `parallel_apply` could not use them. It asks how many there are for each replica, and
    takes only a list or a tuple for arguments: a `map` or a generator is *one* argument.
    """
    return [map(blob.get, names) for blob in blobs]
