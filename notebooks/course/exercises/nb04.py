"""Exercises of notebook 04: whose the current device is, where a replica lives, one argument list for each device."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.learn.exercise import Case, Exercise, Mistake

Event = tuple[Any, ...]


def current_device(events: Sequence[Event]) -> list[int]:
    current: dict[str, list[int]] = {}
    seen = []
    for thread, event, *argument in events:
        stack = current.setdefault(thread, [0])
        if event == "set_device":
            stack[-1] = argument[0]
        elif event == "enter":
            stack.append(argument[0])
        elif event == "exit":
            stack.pop()
        seen.append(stack[-1])
    return seen


def _cpu_resets(events: Sequence[Event]) -> list[int]:
    """A list in which work on the CPU sets the device to 0, until the next event that sets one."""
    return current_device([(event[0], "set_device", 0) if event[1] == "cpu" else event for event in events])


def _one_for_all(events: Sequence[Event]) -> list[int]:
    return current_device([("all", *event[1:]) for event in events])


def _call_is_enough(events: Sequence[Event]) -> list[int]:
    return current_device([(thread, "set_device" if e == "device" else e, *rest) for thread, e, *rest in events])


def _event_cases(random: Random) -> Sequence[Case]:
    a, b = "main", "worker"
    fixed: list[list[Event]] = [
        [(a, "set_device", 1), (a, "cpu"), (a, "new tensor")],
        [(a, "set_device", 2), (b, "new tensor"), (b, "set_device", 1), (a, "new tensor")],
        [(a, "device", 3), (a, "new tensor"), (a, "enter", 3), (a, "cpu"), (a, "exit")],
    ]
    return [Case((events,)) for events in [*fixed, *(_drawn_events(random) for _ in range(20))]]


def _drawn_events(random: Random) -> list[Event]:
    """Twelve events of two threads; a thread leaves only what it has entered."""
    depth = {"main": 0, "worker": 0}
    events: list[Event] = []
    for _ in range(12):
        thread = random.choice([*depth])
        kinds = ["set_device", "device", "enter", "cpu", "new tensor"] + ["exit"] * (2 * depth[thread])
        kind = random.choice(kinds)
        depth[thread] += {"enter": 1, "exit": -1}.get(kind, 0)
        given = (random.randrange(4),) if kind in ("set_device", "device", "enter") else ()
        events.append((thread, kind, *given))
    return events


def home_device(module: nn.Module) -> torch.device:
    for part in module.modules():
        for value in (*part._parameters.values(), *vars(part).values(), *part._buffers.values()):
            if isinstance(value, Tensor):
                return value.device
    raise ValueError(f"{type(module).__name__} holds no tensor, so it lives nowhere")


def _parameter_or(otherwise: Callable[[], torch.device]) -> Callable[[nn.Module], torch.device]:
    def answer(module: nn.Module) -> torch.device:
        parameter = next(module.parameters(), None)
        return otherwise() if parameter is None else parameter.device

    return answer


def _modules(random: Random) -> Iterator[nn.Module]:
    """Modules on the CPU and on a GPU, and replicas on two GPUs, which list no parameters."""
    for width in (2, 3, *(random.randint(4, 99) for _ in range(5))):
        net = nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, 1))
        yield copy.deepcopy(net)  # stays on the CPU: `.cuda()` moves `net` in place
        yield from (net.cuda(), *nn.parallel.replicate(net, [0, 1]))


def _module_cases(random: Random) -> Sequence[Case]:
    return [Case((module,)) for module in _modules(random)]


def argument_lists(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[blob[name] for name in names] for blob in blobs]


def _blob_cases(random: Random) -> Sequence[Case]:
    names = ["im_data", "im_info", "gt_boxes", "gt_ishard", "dontcare_areas"]
    cases = []
    for gpus in (1, 2, 4, *(random.randint(2, 8) for _ in range(5))):
        keys = random.sample(names, len(names))  # a loader need not build its dict in the order of the signature
        blobs = [{key: f"{key} {random.randrange(1000)}" for key in keys} for _ in range(gpus)]
        cases.append(Case((blobs, names)))
    return cases


EXERCISES = (
    Exercise(
        key="04.current_device",
        task="The current device right after each event, in the thread of that event. An event is (thread, "
        "'set_device' or 'device' or 'enter', k) or (thread, 'exit' or 'cpu' or 'new tensor').",
        reference=current_device,
        cases=_event_cases,
        hints=(
            "Keep a device for each thread, in a dict. What is a thread's first one?",
            "`with torch.cuda.device(k)` is 'enter', and puts back on 'exit' what was current before: a stack.",
            "Only 'set_device', 'enter' and 'exit' change anything. 'device' is the call without the `with`.",
        ),
        mistakes=(
            Mistake(
                "the CPU resets it",
                "you set the device back to 0 after work on the CPU. Nothing but set_device and a context changes it.",
                "the post on a multi-GPU Faster R-CNN, about 2017",
                answers=(_cpu_resets,),
            ),
            Mistake(
                "one for all threads",
                "you kept one current device for the whole process. Each thread has its own and starts with 0.",
                "what pfnet/pytorch-pfn-extras pull request 726, 2023, repairs in its profiler's thread",
                answers=(_one_for_all,),
            ),
            Mistake(
                "a call without with",
                "you let `torch.cuda.device(k)` change the device when it is called. It does so when it is entered.",
                "pytorch/pytorch issue 1608, 2017",
                answers=(_call_is_enough,),
            ),
        ),
    ),
    Exercise(
        key="04.home_device",
        task="The device that a module works on, be it a model of one's own or a replica of `nn.DataParallel`.",
        reference=home_device,
        cases=_module_cases,
        hints=(
            "A replica lists no parameters, but each of its layers still has its weight: where?",
            "In a replica `weight` is a plain attribute: look at `vars(part)` for `part in module.modules()`.",
            "Return the `.device` of the first tensor in `part._parameters`, `vars(part)` or `part._buffers`.",
        ),
        mistakes=(
            Mistake(
                "the CPU otherwise",
                "you fall back to the CPU where there are no parameters. Every replica then says that it is there.",
                "huggingface/sentence-transformers pull request 2614, 2024, does so for models without weights",
                answers=(_parameter_or(lambda: torch.device("cpu")),),
            ),
            Mistake(
                "the current device otherwise",
                "you fall back to the current device. It belongs to the thread that asks, not to the module.",
                "facebookresearch/fairscale pull request 606, 2021",
                answers=(
                    _parameter_or(lambda: torch.device("cuda", torch.cuda.current_device())),
                    _parameter_or(lambda: torch.device("cuda")),
                ),
            ),
        ),
    ),
    Exercise(
        key="04.argument_lists",
        task="For each blob, a dict, the list of its values in the order of `names`, the arguments of forward.",
        reference=argument_lists,
        cases=_blob_cases,
        hints=(
            "One list for each blob, so one for each device.",
            "The order is that of `names`, whatever the order of the dict; nothing is left out.",
            "`[[blob[name] for name in names] for blob in blobs]`",
        ),
        mistakes=(
            Mistake(
                "without the first",
                "you left out the first argument. Every other then moves up by one, and forward takes the second "
                "for the first.",
                "the loop of the post on a multi-GPU Faster R-CNN, about 2017",
                answers=(lambda blobs, names: [[blob[name] for name in names[1:]] for blob in blobs],),
            ),
        ),
    ),
)
