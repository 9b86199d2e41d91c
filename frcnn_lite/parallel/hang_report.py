"""Where each rank stood when a collective hung, and what follows from it: data and words, no processes.

`parallel.watchdog` collects the positions; everything here is a pure function of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["waiting", "running", "left", "silent"]


@dataclass(frozen=True)
class Entered:
    """A collective that a rank has entered.

    number: counted from 1 in each group, so that equal numbers belong together; step: of the training loop, None when
    the program did not say; tensor: shape and dtype in words; site: file and line of the caller; group: its ranks.
    """

    number: int
    name: str
    step: int | None
    tensor: str
    site: str
    group: tuple[int, ...]

    def __str__(self) -> str:
        tensor = f" of {self.tensor}" if self.tensor else ""
        step = "" if self.step is None else f", step {self.step}"
        return f"{self.name} #{self.number}{tensor}{step}, at {self.site}"


@dataclass(frozen=True)
class Position:
    """Where one rank stood when the roll was called.

    state: "waiting" in a collective, "running" outside of any, "left" the block, or "silent": it did not answer.
    call: what it waits in; entered: its last collectives, oldest first; why: the exception with which it left.
    """

    rank: int
    state: State
    step: int | None = None
    call: Entered | None = None
    entered: tuple[Entered, ...] = field(default=())
    site: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.state == "silent":
            return f"rank {self.rank} does not answer: it has ended, or is stopped"
        if self.state == "waiting" and self.call is not None:
            return f"rank {self.rank} waits in {self.call}"
        last = f"; its last collective was {self.entered[-1]}" if self.entered else "; it has entered no collective"
        if self.state == "left":
            when = "" if self.step is None else f" {'in' if self.why else 'after'} step {self.step}"
            return f"rank {self.rank} left{when}{f' with {self.why}' if self.why else ''}{last}"
        step = "" if self.step is None else f" in step {self.step},"
        return f"rank {self.rank} is{step} at {self.site}{last}"

    def has_entered(self, call: Entered) -> bool:
        """Whether it has come to the collective of that number in that group, whatever it called there."""
        return any(own.group == call.group and own.number >= call.number for own in self.entered)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Position":
        values = json.loads(text)
        entered = tuple(_entered(entry) for entry in values.pop("entered"))
        call = values.pop("call")
        return cls(**values, call=_entered(call) if call else None, entered=entered)


class CollectiveHang(RuntimeError):
    """A rank has waited in a collective for longer than its limit; `positions` says where every rank stood."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.positions = tuple(positions)
        super().__init__(diagnose(self.positions))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.positions,)  # across processes with its positions, not as its text alone


def diagnose(positions: Sequence[Position]) -> str:
    """What the ranks wait for, in one line, and then one line for each rank.

    A rank that waits is a victim. The cause is a rank that has not come to the same collective, or that came to another
    one under the same number; a last line says where ranks first called from different lines of the program, since that
    is where a call was left out. Raises ValueError when there is no position.
    """
    if not positions:
        raise ValueError("positions is empty: a diagnosis needs one for each rank")
    return "\n".join([_cause(positions), *(f"  {position}" for position in positions), *_parted(positions)])


def _cause(positions: Sequence[Position]) -> str:
    waiting = [p for p in positions if p.state == "waiting" and p.call is not None]
    if not waiting:
        return "no rank waits in a collective"
    # The earliest: who waits in a later one has passed it.
    victim = min(waiting, key=lambda p: p.call.number if p.call else 0)
    call = victim.call
    assert call is not None
    members = [p for p in positions if p.rank in call.group and p.rank != victim.rank]
    for other in members:
        theirs = next((own for own in other.entered if (own.group, own.number) == (call.group, call.number)), None)
        if theirs is not None and (theirs.name, theirs.tensor) != (call.name, call.tensor):
            return (
                f"rank {victim.rank} and rank {other.rank} entered different collectives as #{call.number}: "
                f"{call.name} of {call.tensor} at {call.site}, {theirs.name} of {theirs.tensor} at {theirs.site}"
            )
    absent = [p.rank for p in members if not p.has_entered(call)]
    where = f"in {call.name} #{call.number}" + ("" if call.step is None else f" of step {call.step}")
    if not absent:
        return f"all ranks of the group are {where}, and it does not end: look at the network and the devices"
    ranks = "rank" if len(absent) == 1 else "ranks"
    return f"rank {victim.rank} waits {where} for {ranks} {', '.join(map(str, absent))}"


def _parted(positions: Sequence[Position]) -> list[str]:
    """The earliest collective that two ranks entered from different lines: an `if rank == 0`, more often than not."""
    first: dict[tuple[tuple[int, ...], int], Entered] = {}
    parted = []
    for position in positions:
        for entry in position.entered:
            other = first.setdefault((entry.group, entry.number), entry)
            if other.site != entry.site:
                parted.append((entry.number, f"{other.name} at {other.site}, {entry.name} at {entry.site}"))
    return [f"  ranks parted at #{number}: {words}" for number, words in sorted(parted)[:1]]


def _entered(values: Mapping[str, Any]) -> Entered:
    return Entered(**{**values, "group": tuple(values["group"])})
