"""The search in a file that does not parse: by token, line by line, with strings and comments left out."""

import re
from collections.abc import Iterator

from .source import lines_of

LONG = 1000  # so many letters of a line are searched, because the time grows with their square
# A string or a comment is matched whole, so that nothing inside it is found; the name of a GPU stays.
QUOTED = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*", re.DOTALL)
GPU = re.compile(r"['\"](torch\.cuda\.\w+Tensor|cuda:\d+)['\"]$")
BLOCK = re.compile(r"^[ \t]*(def|class|for|while)\b\s*(\w*)")
MADE = re.compile(r"\b(\w+)\s*=.*\btorch\.(zeros|ones|rand|randn|arange|eye|empty|(Float|Long|Int|Byte)?Tensor)\(")
MOVED = re.compile(r"\b(\w+)\.(?:cuda|to|type\w*)\(")
PATTERNS = {
    "FL001": (r"\.cuda\(\s*((async|non_blocking)\s*=\s*True\s*)?\)", ".cuda() without a device"),
    "FL003": (r"torch\.cuda\.\w+Tensor\b", "torch.cuda tensor type"),
    "FL004": (r"\.cuda\(\s*(device\s*=\s*)?\d+\s*\)|['\"]cuda:\d+['\"]", "a GPU by its number"),
    "FL005": (
        r"\bself\.\w+(\s*,\s*self\.\w+)*\s*=\s*((F|torch)\.\w+|self\.\w*(loss|layer)\w*)\(",
        "self keeps a tensor",
    ),
    "FL006": (r"\.cpu\(\)(\.data)?\.numpy\(\)|from_numpy\(.*\.numpy\(", "from tensor to array"),
    "FL008": (r"\bself\.\w+\s*=\s*lambda\b.*\bself\.", "a lambda with self in it"),
    "FL009": (r"\.item\(\)|\.data\[0\]", "a number read in a loop"),
}
OWN_DEVICE = re.compile(r"^(main|train|test|eval|evaluate|validate|demo)\w*$")  # a script's: the current one is right


def check(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, rule, what was found)."""
    code = QUOTED.sub(_blank, source)
    blocks: list[tuple[int, str, str]] = []  # indentation, keyword and name of the blocks around a line
    trains, moved = "backward(" in code, set(MOVED.findall(code))
    for number, line in enumerate(lines_of(code), 1):
        if not line.strip():
            continue
        indent = len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
        blocks = [block for block in blocks if block[0] < indent]
        yield from ((number, rule, what) for rule, what in _in_line(line[:LONG], blocks, moved, trains))
        if opened := BLOCK.match(line):
            blocks.append((indent, opened[1], opened[2]))


def _in_line(line: str, blocks: list[tuple[int, str, str]], moved: set[str], trains: bool) -> Iterator[tuple[str, str]]:
    names = [name for _, keyword, name in blocks if keyword == "def"]
    in_script = not names or any(OWN_DEVICE.match(name) for name in names)
    in_forward = "forward" in names
    in_loop = any(keyword in ("for", "while") for _, keyword, _ in blocks)
    holds = {
        **dict.fromkeys(PATTERNS, True),
        "FL001": not in_script,
        "FL005": in_forward,
        "FL006": in_forward or not in_script,
        "FL009": in_loop and trains,
    }
    yield from ((rule, what) for rule, (pattern, what) in PATTERNS.items() if holds[rule] and re.search(pattern, line))
    made = MADE.search(line)
    if made and in_forward and not (re.search(r"cuda|device|\.to\(|type", line) or made[1] in moved):
        yield "FL002", f"torch.{made[2]}() without a device"


def _blank(found: re.Match[str]) -> str:
    """As many lines as before, and nothing on them."""
    return found.group() if GPU.match(found.group()) else "\n" * found.group().count("\n") or "''"
