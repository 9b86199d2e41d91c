"""Answers to the exercises of notebook 02: right ones in an unusual form, and wrong ones that are nearly right."""

import copy
import threading

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong
from torch.nn import parallel as torch_parallel
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

from course.lessons.nb02.puzzles.bytes_held import bytes_held
from course.lessons.nb02.puzzles.gather import gather
from course.lessons.nb02.puzzles.replicate import replicate
from course.lessons.nb02.puzzles.strip_module import strip_module

pytestmark = pytest.mark.virtual_gpus(2)


def _cut(tensors):
    return {name: tensor.detach() for name, tensor in tensors.items()}


def joined_anew(outputs, device):
    """Right values and a graph, which leads to the copies and not to the weights."""

    def cut(part):
        if isinstance(part, torch.Tensor):
            return part.detach().requires_grad_() * 1
        return {key: cut(value) for key, value in part.items()} if isinstance(part, dict) else tuple(map(cut, part))

    return cut(gather(outputs, device))


def in_threads(modules, chunks, devices):
    """Threads that are started by hand; each has its place in the list."""
    outputs = [None] * len(modules)

    def run(k):
        torch.cuda.set_device(devices[k])  # of this thread alone
        outputs[k] = modules[k](chunks[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(modules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outputs


def by_length(batch, devices):
    length = -(-len(batch) // len(devices))
    return tuple(part.to(device) for part, device in zip(batch.split(length), devices, strict=False))


def consumed(state):
    consume_prefix_in_state_dict_if_present(state, "module.")
    return state


RIGHT = [
    ("02.scatter", torch_parallel.scatter),
    ("02.scatter", by_length),
    ("02.replicate", lambda tensors, devices: [{n: t.to(d, copy=True) for n, t in tensors.items()} for d in devices]),
    ("02.parallel_apply", in_threads),
    (
        "02.parallel_apply",
        lambda modules, chunks, devices: torch_parallel.parallel_apply(modules, [(c,) for c in chunks], None, devices),
    ),
    ("02.bytes_held", lambda module, gpus: tuple(bytes_held(module, gpus))),
    ("02.bytes_held", lambda module, gpus: np.array(bytes_held(module, gpus))),
    ("02.strip_module", lambda state: {k.removeprefix("module."): v.clone() for k, v in state.items()}),
    ("02.strip_module", consumed),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("02.scatter", lambda batch, devices: [batch.to(device) for device in devices], None),
    ("02.replicate", lambda tensors, devices: copy.deepcopy(replicate(_cut(tensors), devices)), "cuts the graph"),
    (
        "02.parallel_apply",
        lambda modules, chunks, devices: [m(c) for m, c in zip(modules, chunks, strict=True)],
        "one after the other",
    ),
    ("02.bytes_held", lambda module, n: [sum(t.nbytes for t in module.parameters() if t.requires_grad)] * n, None),
    ("02.gather", joined_anew, "cuts the graph"),
    ("02.strip_module", lambda state: {k: v.float() for k, v in strip_module(state).items()}, None),
    ("02.strip_module", lambda state: strip_module(strip_module(state)), "every leading one"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
