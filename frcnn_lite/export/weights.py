"""Put named tensors into a model, whatever wrapped it when it was saved, and say what became of every name.

The tensors come from any reader of files, such as `torch.load(file, map_location="cpu", weights_only=True)` or
safetensors' `load_file`. (`engine.load_weights` is a different function: it opens a detector of this package together
with its configuration.)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WRAPPER = "module"  # of DataParallel and DistributedDataParallel; a model may have a child of this name, too
# Parts that only wrappers put into a name, also around a single layer: torch.compile, FSDP1 and fairscale's form of it,
# activation checkpointing and offloading, Lightning Fabric.
INNER = ("_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_forward_module")


class WeightsError(ValueError):
    """The weights do not fit, and nothing was loaded; `report` says why."""

    def __init__(self, report: "LoadReport") -> None:
        super().__init__(f"nothing was loaded, because not everything fits.\n{report}")
        self.report = report


@dataclass(frozen=True)
class LoadReport:
    """Each name of model and file in one place. Names are without the prefixes of wrappers.

    Attributes:
        loaded: those that fit.
        missing: in the model only, left as they were.
        unused: in the file only.
        mismatched: name -> the shapes in file and model.
        cast: among those that fit, name -> the types in file and model.
        prefix: what was taken off in front of all names of the file.
        inside: parts that were taken out of some names.
    """

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    cast: dict[str, tuple[torch.dtype, torch.dtype]]
    prefix: str
    inside: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every name of both sides was loaded."""
        return not (self.missing or self.unused or self.mismatched)

    def __str__(self) -> str:
        off = [f"prefix {self.prefix!r}"] * bool(self.prefix) + [f"{part!r} inside of names" for part in self.inside]
        taken_off = f" ({', '.join(off)} taken off)" if off else ""
        lines = [f"fit: {len(self.loaded)} tensors{taken_off}"]
        for title, names in (("missing in the file", self.missing), ("unused by the model", self.unused)):
            lines += [f"{title}: {', '.join(names)}"] if names else []
        lines += [
            f"mismatched: {name}, {file} in the file, {own} here" for name, (file, own) in self.mismatched.items()
        ]
        kinds = {kind: sum(1 for pair in self.cast.values() if pair == kind) for kind in self.cast.values()}
        lines += [f"cast: {count} tensors from {file} to {own}" for (file, own), count in kinds.items()]
        return "\n".join(lines)


def load_weights_into(model: nn.Module, weights: Mapping[str, Tensor], *, partial: bool = False) -> LoadReport:
    """Load named tensors into `model`, whether either was wrapped or bare; each keeps the model's device and type.

    Args:
        partial: load what fits and report the rest.

    Raises:
        WeightsError: without `partial`, something is missing, unused or of a different shape; the model is as it was.
        ValueError: no name at all is shared, or two names of the file are the same without what wrappers put into them.
    """
    own, _, _ = unwrapped(model.state_dict())
    given, prefix, inside = unwrapped(weights)
    report = compare(own, given, prefix, inside)
    if not report.is_complete and not partial:
        raise WeightsError(report)
    if not report.loaded:
        raise ValueError(f"no name of the file fits the model, so not even a part can be loaded.\n{report}")
    with torch.no_grad():
        for name in report.loaded:
            own[name].copy_(given[name])
    return report


def compare(
    own: Mapping[str, Tensor], given: Mapping[str, Tensor], prefix: str = "", inside: tuple[str, ...] = ()
) -> LoadReport:
    """The report of a load that is not made."""
    shared = [name for name in own if name in given]
    wrong = {name for name in shared if not _fits(given[name], own[name])}
    fits = [name for name in shared if name not in wrong]
    return LoadReport(
        loaded=tuple(fits),
        missing=tuple(name for name in own if name not in given),
        unused=tuple(name for name in given if name not in own),
        mismatched={name: (tuple(given[name].shape), tuple(own[name].shape)) for name in shared if name in wrong},
        cast={name: (given[name].dtype, own[name].dtype) for name in fits if given[name].dtype != own[name].dtype},
        prefix=prefix,
        inside=inside,
    )


def unwrapped(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], str, tuple[str, ...]]:
    """The tensors without what wrappers put into their names, the prefix that all names lost, and the parts inside.

    The parts of `INNER` are taken out wherever they are. `module` is a wrapper's only as a prefix that *all* names
    share, because a model may well have one child of this name. Whole parts are compared: `str.replace` would cut
    inside words, `str.lstrip` takes letters and not a word.

    Raises ValueError when two names are the same without these parts.
    """
    paths = {name: name.split(".") for name in state}
    prefix = ""
    while paths and len(firsts := {path[0] for path in paths.values()}) == 1 and firsts <= {WRAPPER, *INNER}:
        prefix += f"{firsts.pop()}."
        paths = {name: path[1:] for name, path in paths.items()}
    inside = tuple(part for part in INNER if any(part in path for path in paths.values()))
    short = {name: ".".join(part for part in path if part not in INNER) for name, path in paths.items()}
    originals: dict[str, str] = {}
    for name, bare in short.items():
        if bare in originals:
            raise ValueError(f"{originals[bare]!r} and {name!r} are both {bare!r} without what wrappers put into names")
        originals[bare] = name
    return {bare: state[name] for bare, name in originals.items()}, prefix, inside


def _fits(given: Tensor, own: Tensor) -> bool:
    """Same shape, and of the same kind: rounding weights to whole numbers is never what is meant."""
    return given.shape == own.shape and given.is_floating_point() == own.is_floating_point()
