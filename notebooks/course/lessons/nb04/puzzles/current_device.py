"""The current device right after each event, in the thread of that event. An event is (thread, 'set_device', k), or
'device' for a call of `torch.cuda.device(k)`, 'enter' and 'exit' for a `with` of it, 'cpu' or 'new tensor' for work.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Keep a device for each thread, in a dict. What is a thread's first one?",
    "`with torch.cuda.device(k)` is 'enter', and puts back on 'exit' what was current before: a stack.",
    "Only 'set_device', 'enter' and 'exit' change anything. 'device' is the call without the `with`.",
)


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


def _as_set(event: Event) -> Event:
    thread, kind, *argument = event
    return (thread, "set_device" if kind == "enter" else kind, *argument)


def cases(random: Random) -> Sequence[Case]:
    a, b = "main", "worker"
    fixed: list[list[Event]] = [
        [(a, "set_device", 1), (a, "cpu"), (a, "new tensor")],
        [(a, "set_device", 2), (b, "new tensor"), (b, "set_device", 1), (a, "new tensor")],
        [(a, "device", 3), (a, "new tensor"), (a, "enter", 3), (a, "cpu"), (a, "exit")],
        [(a, "set_device", 1), (a, "enter", 3), (a, "exit"), (a, "new tensor")],
        [(a, "enter", 1), (a, "enter", 2), (a, "exit"), (a, "exit"), (a, "new tensor")],
        [(a, "enter", 1), (a, "set_device", 2), (a, "new tensor"), (a, "exit"), (a, "new tensor")],
        [("loader", "set_device", 3), ("writer", "new tensor"), (a, "enter", 1), ("loader", "cpu"), (b, "cpu")],
    ]
    return [Case((events,)) for events in [*fixed, *(_drawn_events(random) for _ in range(20))]]


def _same_devices(given: Any, expected: list[int]) -> bool:
    """A device may be a number, a name or a torch.device."""
    numbers = [torch.device(each).index if isinstance(each, str | torch.device) else each for each in given]
    return numbers == expected


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


agree = _same_devices


@wrong
def the_CPU_resets_it(events: Sequence[Event]) -> list[int]:
    """this is what comes out when work on the CPU sets the device back to 0. Nothing but set_device and a context
    changes it.
    """
    # A list in which work on the CPU sets the device to 0, until the next event that sets one.
    return current_device([(event[0], "set_device", 0) if event[1] == "cpu" else event for event in events])


@wrong
def one_for_all_threads(events: Sequence[Event]) -> list[int]:
    """this is the device of a process in which all threads share one. Each thread has its own, and starts with 0.

    Source: a loader's thread that uses GPU 0: meta-pytorch/torchrec pull request 1742, 2024
    """
    return current_device([("all", *event[1:]) for event in events])


@wrong
def a_call_without_with(events: Sequence[Event]) -> list[int]:
    """this is what comes out when `torch.cuda.device(k)` changes the device as soon as it is called. It does so when it
    is entered.

    Source: pytorch/pytorch issue 1608, 2017
    """
    return current_device([(thread, "set_device" if e == "device" else e, *rest) for thread, e, *rest in events])


@wrong
def thread_inherits(events: Sequence[Event]) -> list[int]:
    """this is what comes out when a new thread starts with the device of the thread that starts it. It starts with 0,
    wherever the others are.

    Source: what pfnet/pytorch-pfn-extras pull request 726, 2023, repairs in its profiler's thread
    """
    # A new thread begins with the device that is current in the other one at that moment.
    told: list[Event] = []
    seen: list[int] = []
    for event in events:
        if seen and event[0] not in {thread for thread, *_ in told}:
            told.append((event[0], "set_device", seen[-1]))
        told.append(event)
        seen.append(current_device(told)[-1])
    return seen


@wrong
def exit_goes_to_0(events: Sequence[Event]) -> list[int]:
    """this is what comes out when the end of a `with` sets the device to 0. It goes back to what was current before the
    `with`.

    Source: what cupy/cupy issue 7466, 2023, met in CuPy before version 12
    """
    return current_device([(e[0], "set_device", 0) if e[1] == "exit" else _as_set(e) for e in events])


@wrong
def none_at_first(events: Sequence[Event]) -> list[int | None]:
    """this is what comes out when a thread has no device until it chooses one. It starts with cuda:0."""
    chosen: set[str] = set()
    seen: list[int | None] = []
    for gpu, (thread, event, *_) in zip(current_device(events), events, strict=True):
        chosen |= {thread} if event in ("set_device", "enter") else set()
        seen.append(gpu if thread in chosen else None)
    return seen


@wrong
def exit_changes_nothing(events: Sequence[Event]) -> list[int]:
    """this is what comes out when the end of a `with` changes nothing. It goes back to what was current before the
    `with`.
    """
    return current_device([(e[0], "cpu") if e[1] == "exit" else _as_set(e) for e in events])


@wrong
def one_device_remembered(events: Sequence[Event]) -> list[int]:
    """this is what comes out when each thread remembers a single device to go back to. A `with` inside a `with`
    overwrites it: keep a stack.
    """
    # One device to go back to for each thread: a `with` inside a `with` overwrites it.
    now: dict[str, int] = {}
    before: dict[str, int] = {}
    seen = []
    for thread, event, *argument in events:
        if event == "enter":
            before[thread] = now.get(thread, 0)
        if event in ("enter", "set_device"):
            now[thread] = argument[0]
        elif event == "exit":
            now[thread] = before[thread]
        seen.append(now.get(thread, 0))
    return seen


@wrong
def a_with_wins(events: Sequence[Event]) -> list[int]:
    """this is what comes out when a `with` wins over a `set_device` inside it. `set_device` works at once, also in
    there.
    """
    # `set_device` inside a `with` waits until the `with` has ended.
    base: dict[str, int] = {}
    inside: dict[str, list[int]] = {}
    seen = []
    for thread, event, *argument in events:
        stack = inside.setdefault(thread, [])
        if event == "set_device":
            base[thread] = argument[0]
        elif event == "enter":
            stack.append(argument[0])
        elif event == "exit":
            stack.pop()
        seen.append(stack[-1] if stack else base.get(thread, 0))
    return seen


@wrong
def outlives_the_with(events: Sequence[Event]) -> list[int]:
    """this is what comes out when a `set_device` inside a `with` outlives it. At its end the `with` puts back what was
    current before it, whatever was set in between.
    """
    # `set_device` inside a `with` is still in force after it.
    kept: dict[str, list[int]] = {}
    seen = []
    for thread, event, *argument in events:
        stack = kept.setdefault(thread, [0])
        if event == "set_device":
            kept[thread] = stack = argument * len(stack)
        elif event == "enter":
            stack.append(argument[0])
        elif event == "exit":
            stack.pop()
        seen.append(stack[-1])
    return seen


@wrong
def new_tensors_only(events: Sequence[Event]) -> list[int]:
    """these are the devices of the new tensors alone. The list has an entry for *every* event, the device right after
    it.
    """
    return [gpu for gpu, event in zip(current_device(events), events, strict=True) if event[1] == "new tensor"]
