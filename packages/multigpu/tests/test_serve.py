"""The server of the Model Context Protocol: what an agent sends, and what it gets."""

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from multigpu.serve import VERSIONS, serve
from multigpu.tools import TOOLS

TWO_DEVICES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)


def ask(*messages: Any) -> list[Any]:
    """The replies to these messages; a text is sent as it is."""
    replies = io.StringIO()
    serve([one if isinstance(one, str) else json.dumps(one) for one in messages], replies)
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def request(method: str, params: Any = None, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def call(name: str, arguments: Any) -> dict[str, Any]:
    """What a call of a tool gives."""
    (reply,) = ask(request("tools/call", {"name": name, "arguments": arguments}))
    return dict(reply["result"])


@pytest.mark.parametrize("wanted", VERSIONS)
def test_a_client_gets_the_version_of_the_protocol_that_it_asks_for(wanted: str) -> None:
    (reply,) = ask(request("initialize", {"protocolVersion": wanted, "capabilities": {}, "clientInfo": {}}))
    assert reply["result"]["protocolVersion"] == wanted and "tools" in reply["result"]["capabilities"]


def test_a_client_of_an_unknown_version_is_offered_the_newest() -> None:
    (reply,) = ask(request("initialize", {"protocolVersion": "1999-01-01"}))
    assert reply["result"]["protocolVersion"] == VERSIONS[0]


def test_a_notification_and_a_reply_of_the_client_have_no_answer() -> None:
    assert (
        ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 4, "result": {}}) == []
    )


def test_every_tool_is_listed_with_a_schema_of_its_one_argument() -> None:
    (reply,) = ask(request("tools/list"))
    assert reply["result"]["tools"] == TOOLS
    assert {tool["name"]: tool["inputSchema"]["required"] for tool in TOOLS} == {"explain": ["text"], "lint": ["code"]}


def test_an_error_text_is_explained_with_the_line_that_decided() -> None:
    said = call("explain", {"text": f"epoch 3\n{TWO_DEVICES}\n"})["structuredContent"]
    first = said["entries"][0]
    assert (said["found"], first["entry"], first["decided_by"]) == ("sure", "two-devices", [TWO_DEVICES])
    assert first["cause"] and first["fix"] and first["sources"][0]["url"].startswith("https://github.com/")


def test_the_text_of_a_result_is_its_structure_as_json() -> None:
    result = call("explain", {"text": "two-devices"})
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_code_is_linted() -> None:
    (found,) = call("lint", {"code": "import torch\nx = torch.rand(2)\nx = x.cuda(1)\n"})["structuredContent"][
        "findings"
    ]
    assert (found["rule"], found["line"]) == ("FL004", 3)


@pytest.mark.parametrize("arguments", [{}, {"text": ""}, {"text": 3}, {"text": "a", "more": 1}, ["text"], "text"])
def test_bad_arguments_are_a_result_that_names_the_argument(arguments: Any) -> None:
    result = call("explain", arguments)
    assert result["isError"] and "text" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("not JSON", -32700),
        ("[]", -32600),
        ("3", -32600),
        ({"id": 1}, -32600),
        (request("resources/list"), -32601),
        (request("tools/call", {"name": "doctor"}), -32602),
        (request("tools/call", {"name": ["explain"]}), -32602),
        (request("tools/list", [1]), -32602),
    ],
)
def test_a_request_that_cannot_be_answered_gets_the_code_of_json_rpc(sent: Any, code: int) -> None:
    (reply,) = ask(sent)
    assert reply["error"]["code"] == code


def test_a_batch_is_answered_in_one_line_and_goes_on_after_an_error() -> None:
    batch, after = ask(
        [request("ping", number=7), {"jsonrpc": "2.0", "method": "x"}, request("none", number=8)], request("ping")
    )
    assert [reply["id"] for reply in batch] == [7, 8] and after["result"] == {}


def test_the_program_answers_over_its_pipes_and_ends_with_them() -> None:
    """Also where the locale is not UTF-8, and where a log holds a character that ends lines in JavaScript."""
    sent = json.dumps(request("tools/call", {"name": "explain", "arguments": {"text": f"\u2028é {TWO_DEVICES}"}}))
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "multigpu", "serve"],
        input=sent.encode() + b"\n",
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 1)
    assert json.loads(done.stdout)["result"]["structuredContent"]["found"] == "sure"


def test_a_client_of_the_registry_understands_the_server() -> None:
    """The protocol's own client for Python, where it is installed: `pip install ./packages/multigpu[client]`."""
    mcp = pytest.importorskip("mcp")
    anyio, stdio = pytest.importorskip("anyio"), pytest.importorskip("mcp.client.stdio")

    async def talk() -> tuple[list[str], str, bool]:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "multigpu", "serve"], env=dict(os.environ)
        )
        async with stdio.stdio_client(server) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            explained = await session.call_tool("explain", {"text": TWO_DEVICES})
            refused = (await session.call_tool("explain", {})).model_dump()
            return tools, explained.content[0].text, bool(refused.get("isError", refused.get("is_error")))

    tools, text, refused = anyio.run(talk)
    assert tools == ["explain", "lint"] and json.loads(text)["entries"][0]["entry"] == "two-devices" and refused
