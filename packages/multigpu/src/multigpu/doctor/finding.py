"""The outcome of each check of the doctor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; `fix` is empty when there is nothing to do."""

    check: str
    ok: bool
    message: str
    fix: str = ""
