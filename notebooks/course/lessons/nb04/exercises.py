"""Exercises of notebook 04: the test for two GPUs, the current device of each thread, an array for a layer."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Exercise, Mistake, Trial

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


def _thread_inherits(events: Sequence[Event]) -> list[int]:
    """A new thread begins with the device that is current in the other one at that moment."""
    told: list[Event] = []
    seen: list[int] = []
    for event in events:
        if seen and event[0] not in {thread for thread, *_ in told}:
            told.append((event[0], "set_device", seen[-1]))
        told.append(event)
        seen.append(current_device(told)[-1])
    return seen


def _exit_to_zero(events: Sequence[Event]) -> list[int]:
    return current_device([(e[0], "set_device", 0) if e[1] == "exit" else _as_set(e) for e in events])


def _exit_ignored(events: Sequence[Event]) -> list[int]:
    return current_device([(e[0], "cpu") if e[1] == "exit" else _as_set(e) for e in events])


def _one_remembered(events: Sequence[Event]) -> list[int]:
    """One device to go back to for each thread: a `with` inside a `with` overwrites it."""
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


def _with_wins(events: Sequence[Event]) -> list[int]:
    """`set_device` inside a `with` waits until the `with` has ended."""
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


def _outlives_the_with(events: Sequence[Event]) -> list[int]:
    """`set_device` inside a `with` is still in force after it."""
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


def _none_at_first(events: Sequence[Event]) -> list[int | None]:
    chosen: set[str] = set()
    seen: list[int | None] = []
    for gpu, (thread, event, *_) in zip(current_device(events), events, strict=True):
        chosen |= {thread} if event in ("set_device", "enter") else set()
        seen.append(gpu if thread in chosen else None)
    return seen


def _new_tensors_only(events: Sequence[Event]) -> list[int]:
    return [gpu for gpu, event in zip(current_device(events), events, strict=True) if event[1] == "new tensor"]


def _as_set(event: Event) -> Event:
    thread, kind, *argument = event
    return (thread, "set_device" if kind == "enter" else kind, *argument)


def _event_cases(random: Random) -> Sequence[Case]:
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


class _Scaled(nn.Module):
    """Scales three numbers with a tensor kept in one way or another, made on the GPU that is current."""

    scale: Tensor

    def __init__(self, scale: Sequence[float]) -> None:
        super().__init__()
        self.keep(torch.tensor(scale, device="cuda"))  # noqa: FL001 the mistake itself

    def __repr__(self) -> str:
        return f"<{type(self).__doc__}>"

    def keep(self, scale: Tensor) -> None:
        raise NotImplementedError

    def scale_for(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale_for(x)


class _Buffer(_Scaled):
    """a buffer"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale)

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale


class _Unsaved(_Buffer):
    """a buffer that no checkpoint holds"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale, persistent=False)


class _Weight(_Buffer):
    """a weight"""

    def keep(self, scale: Tensor) -> None:
        self.scale = nn.Parameter(scale)


class _Plain(_Buffer):
    """a plain tensor"""

    def keep(self, scale: Tensor) -> None:
        self.scale = scale


class _Moved(_Plain):
    """a plain tensor that forward moves to its input"""

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale.to(x.device)


class _Listed(_Scaled):
    """a tensor in a list"""

    def keep(self, scale: Tensor) -> None:
        self.scales = [scale]

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scales[0]


class _Function(_Buffer):
    """a lambda made in __init__"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale)
        self.take = lambda: self.scale

    def scale_for(self, x: Tensor) -> Tensor:
        return self.take()


class _Numbered(_Weight):
    """self.device = "cuda:0\""""

    def keep(self, scale: Tensor) -> None:
        super().keep(scale)
        self.device = scale.device

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.device) * self.scale


class _Guarded(_Plain):
    """a plain tensor that is skipped where it lies on a different GPU"""

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale if self.scale.device == x.device else torch.ones_like(x)


class _Rounded(_Buffer):
    """a buffer, and sums whose rounding depends on the number of rows"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 7 * len(x) - 7 * len(x)  # 7: so that a batch and its halves round differently


class _Mixed(_Buffer):
    """a layer that mixes each row with one from the other end of the batch, as mixup does"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + x.flip(0) / 2)


class _Relative(_Buffer):
    """a layer that measures each row by those beside it while it trains, as batch norm does"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.amax(0) if self.training else x)


@dataclass(frozen=True)
class _OwnModule(Trial):
    """Each test gets a module of its own: what one test has done to it is not handed to the next."""

    def call(self, function: Callable[..., Any]) -> Any:
        return Trial(copy.deepcopy(self.args)).call(function)


_RIGHT = (_Buffer, _Weight, _Unsaved, _Moved, _Rounded)
_WRONG = (_Plain, _Listed, _Function, _Numbered, _Guarded, _Mixed, _Relative)


def same_on_two_gpus(module: nn.Module, x: Tensor) -> None:
    expected = module(x)
    found = nn.DataParallel(module, [0, 1])(x)
    torch.testing.assert_close(found, expected)


def _one_gpu(module: nn.Module, x: Tensor) -> None:
    torch.testing.assert_close(nn.DataParallel(module, [0])(x), module(x))


def _one_row(module: nn.Module, x: Tensor) -> None:
    torch.testing.assert_close(nn.DataParallel(module, [0, 1])(x[:1]), module(x[:1]))


def _shapes_only(module: nn.Module, x: Tensor) -> None:
    found = nn.DataParallel(module, [0, 1])(x)
    assert found.shape == module(x).shape


def _runs_only(module: nn.Module, x: Tensor) -> None:
    nn.DataParallel(module, [0, 1])(x)


def _bit_for_bit(module: nn.Module, x: Tensor) -> None:
    assert torch.equal(nn.DataParallel(module, [0, 1])(x), module(x))


def _in_evaluation(module: nn.Module, x: Tensor) -> None:
    same_on_two_gpus(module.eval(), x)


def _second_replica(module: nn.Module, x: Tensor) -> None:
    found = nn.parallel.replicate(module, [0, 1])[1](x.to("cuda:1"))
    torch.testing.assert_close(found.to("cuda:0"), module(x))


def _sums_only(module: nn.Module, x: Tensor) -> None:
    torch.testing.assert_close(nn.DataParallel(module, [0, 1])(x).sum(), module(x).sum())


def _bits_in_evaluation(module: nn.Module, x: Tensor) -> None:
    _bit_for_bit(module.eval(), x)


def _returns_the_comparison(module: nn.Module, x: Tensor) -> bool:
    return torch.allclose(nn.DataParallel(module, [0, 1])(x), module(x))


def _parameters_of_replicas(module: nn.Module, x: Tensor) -> None:
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for weight in replica.parameters():
            assert weight.get_device() == gpu


def _state_of_replicas(module: nn.Module, x: Tensor) -> None:
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for value in (*replica.parameters(), *replica.buffers(), *replica.state_dict().values()):
            assert value.get_device() == gpu


def _attributes_of_replicas(module: nn.Module, x: Tensor) -> None:
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for value in vars(replica).values():
            assert not isinstance(value, Tensor) or value.get_device() == gpu


def _module_cases(random: Random) -> Sequence[Case]:
    """Fixed: two right and two wrong ones. Drawn: all of them in an order of its own, with other scales and rows."""
    kinds = [*_RIGHT, *_WRONG]
    fixed = [_Buffer, _Plain, _Weight, _Guarded]
    drawn = random.sample(kinds, len(kinds))
    scales = [[2.0, 3.0, 4.0]] * len(fixed) + [[round(random.uniform(2, 9), 1) for _ in range(3)] for _ in drawn]
    return [
        _OwnModule((kind(scale), torch.rand(random.randint(4, 9), 3, device="cuda")))  # noqa: FL001 the case's GPU
        for kind, scale in zip([*fixed, *drawn], scales, strict=True)
    ]


class _Layer(nn.Linear):
    """A layer that says whose it is where a call is shown."""

    whose = "your model"

    def __repr__(self) -> str:
        return f"<an nn.Linear of {self.whose}, on {self.weight.device}>"


def _replicas(layer: nn.Module) -> list[nn.Module]:
    replicas = nn.parallel.replicate(layer, [0, 1])
    for replica in replicas:
        vars(replica)["whose"] = "a replica"
    return replicas


def bring_to(layer: nn.Linear, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to(layer.weight.device)


def _bare_cuda(layer: nn.Linear, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).cuda()  # noqa: FL001 the mistake itself


def _always_zero(layer: nn.Linear, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to("cuda:0")  # noqa: FL004 the mistake itself


def _first_parameter(layer: nn.Linear, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to(next(layer.parameters()).device)


def _first_parameter_or(otherwise: Callable[[], torch.device]) -> Callable[[nn.Linear, np.ndarray], Tensor]:
    def answer(layer: nn.Linear, array: np.ndarray) -> Tensor:
        weight = next(layer.parameters(), None)
        return torch.from_numpy(array).to(otherwise() if weight is None else weight.device)

    return answer


@dataclass(frozen=True)
class _Entered(Case):
    """A call inside `with torch.cuda.device(current)`, so the current device says nothing about the layer."""

    current: int = 0

    def call(self, function: Callable[..., Any]) -> Any:
        with torch.cuda.device(self.current):
            return super().call(function)

    def show(self, name: str) -> str:
        return f"with cuda:{self.current} current, {super().show(name)}"


def _layer_cases(random: Random) -> Sequence[Case]:
    """Layers on the CPU and on a GPU, and replicas on two GPUs, which list no parameters."""
    cases = []
    for width in (2, 3, *(random.randint(4, 99) for _ in range(5))):
        array = np.array([[random.random() for _ in range(width)] for _ in range(4)], dtype=np.float32)
        layer = _Layer(width, 1, bias=width % 2 == 0).cuda()  # noqa: FL001 any GPU
        for each in (layer, *_replicas(layer), _Layer(width, 1)):
            cases += [_Entered((each, array), current=current) for current in (0, 1)]
    return cases


def _same_place(given: Any, expected: Tensor) -> bool:
    return given.device == expected.device and torch.equal(given, expected)


EXERCISES = (
    Exercise(
        key="04.same_on_two_gpus",
        task="A test of `module`, which lies on cuda:0, with the batch `x`: it raises where two GPUs give something "
        "else than one, and ends without an error where they give the same.",
        reference=same_on_two_gpus,
        cases=_module_cases,
        hints=(
            "What should be equal? Run the module alone, and on two GPUs.",
            "`nn.DataParallel(module, [0, 1])` runs it on two. With one row, one of them has nothing to do.",
            "Some wrong modules raise nothing: compare the numbers, `torch.testing.assert_close(found, expected)`.",
        ),
        mistakes=(
            Mistake(
                "passes for every module",
                "this is how a test ends that passes for every module, right or wrong. One that uses a single GPU "
                "or a single row does, and so does one that looks only at weights and buffers, because those "
                "always follow their replica.",
                "NVIDIA/apex pull request 1711, 2023, on a parallel test that ran on a single GPU",
                answers=(_one_gpu, _one_row, _parameters_of_replicas, _state_of_replicas),
            ),
            Mistake(
                "shapes only",
                "this is how a test ends that no number can make fail, such as one that compares shapes, or that "
                "returns a comparison without an `assert`. A module that skips its scale on cuda:1 gives the "
                "right shapes.",
                "the counter of pytorch/pytorch issue 2864, 2017: every shape is right, and nothing raises",
                answers=(_shapes_only, _runs_only, _returns_the_comparison),
            ),
            Mistake(
                "bit for bit",
                "this is how a test ends that compares bit for bit. A right module may round differently where a "
                "GPU has fewer rows, so leave room for the last digits: `torch.testing.assert_close`.",
                "asked about in pytorch/pytorch issue 14007, 2018",
                answers=(_bit_for_bit,),
            ),
            Mistake(
                "in evaluation",
                "this is how a test ends that never trains a part of the batch: it calls `module.eval()`, or it "
                "gives the second GPU all rows. One of the modules is wrong in training alone, because it "
                "measures each row by those on the same GPU, as batch norm does (notebook 02). Test the mode in "
                "which a module is used, and divide the batch as `nn.DataParallel` does.",
                answers=(_in_evaluation, _bits_in_evaluation, _second_replica),
            ),
            Mistake(
                "one number of all rows",
                "this is how a test ends that compares a sum or a mean. One of the modules mixes rows, of which a GPU "
                "has only its own, and the sum over all rows is the same in any order.",
                answers=(_sums_only,),
            ),
            Mistake(
                "attributes only",
                "this is how a test ends that looks at the tensors among the attributes. It misses those in a "
                "list, a device and a function, and it fails where `forward` moves the tensor itself.",
                "tensors in a list that stay behind: pytorch/pytorch issue 29807, 2019",
                answers=(_attributes_of_replicas,),
            ),
        ),
    ),
    Exercise(
        key="04.current_device",
        task="The current device right after each event, in the thread of that event. An event is (thread, "
        "'set_device' or 'device' or 'enter', k) or (thread, 'exit' or 'cpu' or 'new tensor').",
        reference=current_device,
        cases=_event_cases,
        agree=_same_devices,
        hints=(
            "Keep a device for each thread, in a dict. What is a thread's first one?",
            "`with torch.cuda.device(k)` is 'enter', and puts back on 'exit' what was current before: a stack.",
            "Only 'set_device', 'enter' and 'exit' change anything. 'device' is the call without the `with`.",
        ),
        mistakes=(
            Mistake(
                "the CPU resets it",
                "this is what comes out when work on the CPU sets the device back to 0. Nothing but set_device "
                "and a context changes it.",
                answers=(_cpu_resets,),
            ),
            Mistake(
                "one for all threads",
                "this is the device of a process in which all threads share one. Each thread has its own, and "
                "starts with 0.",
                "a loader's thread that uses GPU 0: meta-pytorch/torchrec pull request 1742, 2024",
                answers=(_one_for_all,),
            ),
            Mistake(
                "a call without with",
                "this is what comes out when `torch.cuda.device(k)` changes the device as soon as it is called. "
                "It does so when it is entered.",
                "pytorch/pytorch issue 1608, 2017",
                answers=(_call_is_enough,),
            ),
            Mistake(
                "thread inherits",
                "this is what comes out when a new thread starts with the device of the thread that starts it. It "
                "starts with 0, wherever the others are.",
                "what pfnet/pytorch-pfn-extras pull request 726, 2023, repairs in its profiler's thread",
                answers=(_thread_inherits,),
            ),
            Mistake(
                "exit goes to 0",
                "this is what comes out when the end of a `with` sets the device to 0. It goes back to what was "
                "current before the `with`.",
                "what cupy/cupy issue 7466, 2023, met in CuPy before version 12",
                answers=(_exit_to_zero,),
            ),
            Mistake(
                "none at first",
                "this is what comes out when a thread has no device until it chooses one. It starts with cuda:0.",
                answers=(_none_at_first,),
            ),
            Mistake(
                "exit changes nothing",
                "this is what comes out when the end of a `with` changes nothing. It goes back to what was "
                "current before the `with`.",
                answers=(_exit_ignored,),
            ),
            Mistake(
                "one device remembered",
                "this is what comes out when each thread remembers a single device to go back to. A `with` inside "
                "a `with` overwrites it: keep a stack.",
                answers=(_one_remembered,),
            ),
            Mistake(
                "a with wins",
                "this is what comes out when a `with` wins over a `set_device` inside it. `set_device` works at "
                "once, also in there.",
                answers=(_with_wins,),
            ),
            Mistake(
                "outlives the with",
                "this is what comes out when a `set_device` inside a `with` outlives it. At its end the `with` "
                "puts back what was current before it, whatever was set in between.",
                answers=(_outlives_the_with,),
            ),
            Mistake(
                "new tensors only",
                "these are the devices of the new tensors alone. The list has an entry for *every* event, the "
                "device right after it.",
                answers=(_new_tensors_only,),
            ),
        ),
    ),
    Exercise(
        key="04.bring_to",
        task="The array as a tensor on the device, a GPU or the CPU, where `layer`, an `nn.Linear` of your model or of "
        "a replica, has its weight.",
        reference=bring_to,
        cases=_layer_cases,
        agree=_same_place,
        hints=(
            "Ask something that is on the right device for sure. Not the thread, and not a number.",
            "You know what an `nn.Linear` keeps its numbers in, by name: a replica has it under the same name.",
            "`torch.from_numpy(array).to(layer.weight.device)`",
        ),
        mistakes=(
            Mistake(
                "the first of parameters()",
                "this is what the first of `layer.parameters()` leads to. This layer belongs to a replica, and a "
                "replica lists no parameters. Ask its weight by name.",
                "pytorch/pytorch issue 40457, 2020",
                answers=(_first_parameter,),
            ),
            Mistake(
                "the CPU otherwise",
                "this is what a function gives that falls back to the CPU where a layer lists no parameters. No "
                "replica lists any, so its array stays on the CPU.",
                "huggingface/sentence-transformers pull request 2614, 2024, does so for models without weights",
                answers=(_first_parameter_or(lambda: torch.device("cpu")),),
            ),
            Mistake(
                "the current device",
                "this is what a function gives that takes the current device. It belongs to the thread that asks, "
                "not to the layer.",
                "facebookresearch/fairscale pull request 606, 2021",
                answers=(
                    _bare_cuda,
                    _first_parameter_or(lambda: torch.device("cuda", torch.cuda.current_device())),
                ),
            ),
            Mistake(
                "cuda:0 for all",
                "this is what a function gives that names cuda:0. The replica on cuda:1 then gets its array on "
                "the wrong GPU.",
                "csuhan/s2anet issue 136, 2022",
                answers=(_always_zero,),
            ),
        ),
    ),
)
