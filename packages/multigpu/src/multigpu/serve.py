"""A server of the Model Context Protocol: an agent asks the catalogue and the linter. `python -m multigpu serve`.

It speaks JSON-RPC over standard input and output, one message a line, as the protocol's stdio transport asks:
https://modelcontextprotocol.io/specification. It runs none of the code that it is given, and it opens no connection.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from multigpu import __version__
from multigpu.tools import CALLS, TOOLS, BadArguments

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # of the protocol, the newest first
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602  # the codes of JSON-RPC
INSTRUCTIONS = """\
Ask `explain` before you guess why a PyTorch program failed on several GPUs: give it the whole error text or log. Name
the entry that it found, and say so where it is a guess. Where it finds nothing, say that it does not know; do not
invent an entry. `lint` finds lines that go wrong on several GPUs in a program that you read or are about to write.
"""


class RequestError(Exception):
    """A request that cannot be answered, with its JSON-RPC code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def main(argv: list[str] | None = None) -> int:
    """Answer an agent's questions on standard input and output, as a server of the Model Context Protocol."""
    argparse.ArgumentParser(prog="python -m multigpu serve", description=main.__doc__).parse_args(argv)
    for stream in (sys.stdin, sys.stdout):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # whatever the locale is
    with contextlib.suppress(KeyboardInterrupt):
        serve(sys.stdin, sys.stdout)
    return 0


def serve(requests: Iterable[str], replies: TextIO) -> None:
    """Answer each line of `requests` on `replies`, until there are no more."""
    for line in requests:
        if line.strip() and (reply := _reply(line)) is not None:
            try:
                print(json.dumps(reply), file=replies, flush=True)  # ASCII, so a line separator in a log ends no line
            except BrokenPipeError:
                return  # the agent has gone


def _reply(line: str) -> dict[str, Any] | list[dict[str, Any]] | None:
    """The reply to one line; None where there is none, as to a notification."""
    try:
        message = json.loads(line)
    except ValueError as error:
        return _failed(None, PARSE_ERROR, f"the line is not JSON: {error}")
    if not isinstance(message, list):
        return _answered(message)
    if not message:
        return _failed(None, INVALID_REQUEST, "a batch must hold at least one message")
    return [reply for one in message if (reply := _answered(one)) is not None] or None


def _answered(message: Any) -> dict[str, Any] | None:
    """The reply to one message."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        is_reply = isinstance(message, dict) and ("result" in message or "error" in message)
        return None if is_reply else _failed(None, INVALID_REQUEST, "a message must be an object with a method")
    if "id" not in message:
        return None  # a notification; all that a client sends, such as notifications/initialized, need no action here
    try:
        return {"jsonrpc": "2.0", "id": message["id"], "result": _result(message["method"], message.get("params"))}
    except RequestError as error:
        return _failed(message["id"], error.code, str(error))


def _failed(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _result(method: str, params: Any) -> dict[str, Any]:
    if not isinstance(params, dict | None):
        raise RequestError(INVALID_PARAMS, f"params must be an object, got {type(params).__name__}")
    if method == "initialize":
        return _initialized(params or {})
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return _called(params or {})
    raise RequestError(NO_METHOD, f"there is no method {method!r}")


def _initialized(params: dict[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "multigpu", "version": __version__},
        "instructions": INSTRUCTIONS,
    }


def _called(params: dict[str, Any]) -> dict[str, Any]:
    """What a tool says. A mistake in its arguments is a result that says so, which an agent can read and mend."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in CALLS:
        raise RequestError(INVALID_PARAMS, f"there is no tool {name!r}; there are {', '.join(CALLS)}")
    try:
        said = CALLS[name](arguments)
    except BadArguments as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    text = json.dumps(said, indent=1, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": said, "isError": False}


if __name__ == "__main__":
    sys.exit(main())
