"""What the doctor finds, check by check."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; `fix` is empty when there is nothing to do."""

    check: str
    ok: bool
    message: str
    fix: str = ""
