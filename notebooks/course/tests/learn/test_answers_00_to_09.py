"""Answers to exercises of notebooks 00 to 09: unusual ones that are right, and wrong ones that are easy to miss."""

import copy
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from answers import assert_right, assert_wrong
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

import vgpu
from course.kit.learn.by_key import find_exercise
from course.lessons.nb03.puzzles.check_loss import all_rows_alike
from course.lessons.nb05.puzzles.train import train
from course.lessons.nb09.puzzles.first_to_fail import first_to_fail


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def moves_the_callers(x, k):
    x.data = x.data.cuda(k)
    return x


def entered(x, k):
    with torch.cuda.device(k):
        return x.cuda()


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


def joined_anew(outputs, device):
    """Right values and a graph, which leads to the copies and not to the weights."""
    joined = find_exercise("02.gather").reference(outputs, device)

    def cut(part):
        if isinstance(part, torch.Tensor):
            return part.detach().requires_grad_() * 1
        return {key: cut(value) for key, value in part.items()} if isinstance(part, dict) else tuple(map(cut, part))

    return cut(joined)


def consumed(state):
    consume_prefix_in_state_dict_if_present(state, "module.")
    return state


def loop_by_hand(model, inputs, steps):
    """No `parallel_apply`: one replica after the other, each with a backward over the count of both."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, total = [], sum(len(boxes) for _, boxes in inputs)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.0
        for k, replica in enumerate(nn.parallel.replicate(model, [0, 1])):
            with torch.cuda.device(k):
                part = replica(*inputs[k])[0].sum() / total
                part.backward()
            loss += part.item()
        optimizer.step()
        losses.append(loss)
    return losses


def two_models(model, inputs, steps):
    """DDP by hand: a second model that is kept equal by adding its gradients up and copying the weights back."""
    second = copy.deepcopy(model).to("cuda:1")
    losses, total = [], sum(len(boxes) for _, boxes in inputs)
    for _ in range(steps):
        loss, gradients = 0.0, []
        for net, (image, boxes) in zip((model, second), inputs, strict=True):
            with torch.cuda.device(net.box.weight.device):
                part = net(image, boxes)[0].sum() / total
            gradients.append(torch.autograd.grad(part, [*net.parameters()]))
            loss += part.item()
        with torch.no_grad():
            for weight, other, mine, its in zip(model.parameters(), second.parameters(), *gradients, strict=True):
                weight -= 0.1 * (mine + its.to("cuda:0"))
                other.copy_(weight)
        losses.append(loss)
    return losses


def without_replicas(model, inputs, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        outputs = [model(*arguments) for arguments in inputs]
        loss = sum(s.sum() for s, _ in outputs) / sum(c.sum() for _, c in outputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def cleared_before_the_step(model, inputs, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        outputs = nn.parallel.parallel_apply(nn.parallel.replicate(model, [0, 1]), inputs, devices=[0, 1])
        sums, counts = nn.parallel.gather(outputs, 0)
        loss = sums.sum() / counts.sum()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


def by_weight(lines):
    """A follower has a word of a follower; the longer list of words a reader may write."""
    return any(w in lines for w in ("peer", "RemoteError", "Failed to recv", "operation timeout", "clients joined"))


def in_layers(reports):
    rest = [(rank, line) for rank, code, line in reports if code != -15 and not by_weight(line)]
    ((rank, _),) = rest
    return rank


ACCEPTED = [
    ("00.on_gpu", lambda x, k: x.to(k)),
    ("00.on_gpu", entered),
    ("00.on_gpu", lambda x, k: torch.empty_like(x, device=f"cuda:{k}", requires_grad=False).copy_(x)),
    ("00.beside", lambda anchors, features: anchors.to(features.device, copy=True)),
    ("00.beside", lambda anchors, features: anchors.type_as(anchors.new_zeros(1, device=features.device))),
    ("00.idle_gpus", lambda rows, devices: devices - len(torch.zeros(rows).chunk(devices))),
    ("01.share", lambda x2, like: x2[0].expand(len(like), *x2.shape[1:])),
    ("01.share", lambda x2, like: torch.broadcast_to(x2, (len(like), *x2.shape[1:]))),
    ("01.test_step", by_rows),
    ("02.bytes_held", lambda module, devices: (nb_bytes(module),) * devices),
    ("02.bytes_held", lambda module, devices: np.full(devices, nb_bytes(module))),
    ("02.strip_module", lambda state: {k.removeprefix("module."): v.clone() for k, v in state.items()}),
    ("02.strip_module", consumed),
    ("03.rank_loss", lambda sums, counts, rank: torch.tensor(len(sums) * sums[rank]) / max(1, sum(counts))),
    ("05.argument_lists", lambda blobs, names: tuple(tuple(blob[name] for name in names) for blob in blobs)),
    ("05.train", loop_by_hand),
    ("05.train", two_models),
    ("09.first_to_fail", in_layers),
    ("09.repeated_steps", lambda killed_in, every: range((killed_in - 1) // every * every + 1, killed_in)),
    ("09.repeated_steps", lambda killed_in, every: np.arange((killed_in - 1) // every * every + 1, killed_in)),
]
REFUSED = [
    ("00.on_gpu", lambda x, k: torch.tensor(x.tolist(), device=k), "cuts the graph"),
    ("00.on_gpu", lambda x, k: x.float().cuda(k), None),
    ("00.on_gpu", moves_the_callers, "cuts the graph"),
    ("00.beside", lambda anchors, features: anchors.to(features), "the type as well"),
    ("00.beside", lambda anchors, features: features.new_tensor(anchors.tolist()), "the type as well"),
    ("01.share", lambda x2, like: x2.detach().expand(len(like), *x2.shape[1:]), "cuts the graph"),
    ("01.share", share_a_clone, "copies"),
    ("01.share", lambda x2, like: x2.to(like.device).expand(len(like), *x2.shape[1:]), None),
    ("01.test_step", by_first_and_last, None),
    ("01.test_step", by_one_pixel, None),
    ("02.bytes_held", lambda module, n: [sum(t.nbytes for t in module.parameters() if t.requires_grad)] * n, None),
    ("02.gather", joined_anew, "cuts the graph"),
    ("02.strip_module", lambda state: {k: v.float() for k, v in nb_strip(state).items()}, None),
    ("02.strip_module", lambda state: nb_strip(nb_strip(state)), "every leading one"),
    ("03.rank_loss", lambda s, c, r: sum(n > 0 for n in c) * s[r] / max(1, sum(c)), "only those that count"),
    ("03.rank_loss", lambda s, c, r: s[r] / max(1, sum(c) / len(c)), "at least one after the division"),
    ("03.rank_loss", lambda s, c, r: len(s) * s[r] / sum(max(1, n) for n in c), "at least one for each"),
    ("03.check_loss", partial(all_rows_alike, devices=(2, 3)), "all rows alike"),
    ("05.argument_lists", lambda blobs, names: ([blob[name] for name in names] for blob in blobs), "iterators"),
    ("05.argument_lists", lambda blobs, names: [map(blob.get, names) for blob in blobs], "iterators"),
    ("05.argument_lists", lambda blobs, names: [[b["im_data"], b["im_info"], b["gt_boxes"]] for b in blobs], None),
    ("05.train", without_replicas, "on one GPU"),
    ("05.train", cleared_before_the_step, "no step"),
    (
        "05.train",
        lambda model, inputs, steps: train(copy.deepcopy(model), inputs, steps),
        "a copy is not a replica",
    ),
    (
        "09.first_to_fail",
        lambda reports: next(i for i, r in enumerate(reports) if first_to_fail([*reports]) == r[0]),
        None,
    ),
    (
        "09.first_to_fail",
        lambda reports: next(r for r, c, s in reports if c not in (-6, -15) and s[:7] != "Runtime"),
        "every SIGABRT",
    ),
    (
        "09.first_to_fail",
        lambda reports: Counter(r for r, _, _ in reports).most_common()[-1][0],
        "the first in the list",
    ),
    ("09.repeated_steps", lambda k, every: [*range((k - 1) // every * every + 1, k + 1)], "the killed step"),
    ("09.repeated_steps", lambda k, every: [*range((k - 1) // every * every, k)], "the saved step again"),
]


def nb_bytes(module):
    return find_exercise("02.bytes_held").reference(module, 1)[0]


def nb_strip(state):
    return find_exercise("02.strip_module").reference(state)


@pytest.mark.parametrize(("key", "answer"), ACCEPTED)
def test_right_in_an_unusual_way(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer", "name"), REFUSED)
def test_wrong_and_named_as_what_it_is(key, answer, name):
    assert_wrong(key, answer, name)
