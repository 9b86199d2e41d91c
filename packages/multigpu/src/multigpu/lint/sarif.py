"""Findings as SARIF 2.1.0, the format that GitHub, GitLab and editors read from any linter."""

import json
import os
from pathlib import Path, PurePath
from urllib.parse import quote

from .. import __version__
from .finding import Finding, Rule
from .rules import RULES

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: list[Finding], unread: list[Exception]) -> str:
    """The text of a SARIF log: the rules, what was found, and what could not be read."""
    order = {code: index for index, code in enumerate(RULES)}
    notes = [{"level": "error", "message": {"text": str(error)}} for error in unread]
    run = {
        "tool": {
            "driver": {
                "name": "multigpu lint",
                "version": __version__,
                "rules": [_rule(each) for each in RULES.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not unread, "toolExecutionNotifications": notes}],
        "results": [_result(found, order[found.rule]) for found in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(rule: Rule) -> dict[str, object]:
    about = f" See: python -m multigpu explain {rule.see}" if rule.see else ""
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.reason},
        "help": {"text": f"{rule.fix}{about}"},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(found: Finding, index: int) -> dict[str, object]:
    """A finding. That of a notebook has its line in the message, since it counts within a cell and not in the file."""
    place: dict[str, object] = {"artifactLocation": {"uri": _uri(found.path)}}
    told = f"{found.message}. Instead: {found.broken.fix}"
    if found.cell:
        told = f"cell {found.cell}, line {found.line}: {told}"
    else:
        place["region"] = {"startLine": found.line}
    return {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": "warning",
        "message": {"text": told},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    """A relative path as it is, since the linter mostly runs at the root of a repository; else an address file:///."""
    given = PurePath(path)
    return Path(path).as_uri() if given.is_absolute() else quote(os.fsencode(given.as_posix()))
