"""docs/private-torch.md lists every private name of PyTorch that the code reads."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("packages/vgpu/src", "packages/multigpu/src", "frcnn_lite", "notebooks/course")
PAGE = ROOT / "docs" / "private-torch.md"


def files() -> list[Path]:
    found = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    # The tests of a lesson are in its folder.
    return [path for path in found if "tests" not in path.relative_to(ROOT).parts and not path.match("test_*.py")]


def bindings(tree: ast.AST) -> dict[str, str]:
    """What each name that a file imports from torch stands for: {"Tensor": "torch.Tensor", ...}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    names |= {alias.asname: alias.name} if alias.asname else {"torch": "torch"}
    return names


def chain(node: ast.AST) -> list[str]:
    """["torch", "_C", "_nn"] of `torch._C._nn`; empty for anything but names and dots."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def private_names(source: str) -> Iterator[str]:
    """Every dotted name below torch that has a part beginning with one underscore, as far as it is written out."""
    tree = ast.parse(source)
    known = bindings(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named = [chain(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) not in inner]
    for name in [*known.values(), *(".".join([known[c[0]], *c[1:]]) for c in named if c and c[0] in known)]:
        if any(part.startswith("_") and not part.startswith("__") for part in name.split(".")):
            yield name


# Private attributes that are Python's and pycocotools', and no business of PyTorch.
OF_OTHERS = {
    *("_Unpickler", "_current_frames", "_exit", "_extra_reducers", "_fields", "_getframe", "_make", "_replace"),
    *("_gts", "_dts"),
}
ASKS = {"getattr", "hasattr", "setattr"}


def private_attributes(trees: list[ast.Module]) -> set[str]:
    """Attributes that begin with one underscore and that none of our own files defines: PyTorch's objects have them."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    ours |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    ours |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own_objects = {"self", "cls"}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    ours |= {
        node.attr
        for node in attributes
        if isinstance(node.ctx, ast.Store) and chain(node)[:1] and chain(node)[0] in own_objects
    }
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    asked = [node.args[1] for node in calls if node.func.id in ASKS and len(node.args) > 1]
    found = {node.attr for node in attributes} | {
        arg.value for arg in asked if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    }
    return {name for name in found - ours - OF_OTHERS if name.startswith("_") and not name.startswith(("__", "_vgpu"))}


def test_attributes_of_objects_are_found_also_by_getattr():
    tree = ast.parse("self._own = 1\nnode._own\nnode._sequence_nr()\ngetattr(node, '_input_metadata', None)\nx.public")
    assert private_attributes([tree]) == {"_sequence_nr", "_input_metadata"}


def test_every_private_attribute_stands_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files()]
    assert sorted(name for name in private_attributes(trees) if name not in page) == []


def test_names_are_read_through_aliases_and_only_if_private():
    source = "import torch\nfrom torch._C import DispatchKey\nDispatchKey.CPU\ntorch.ops.aten\ntorch._C._nn.flat(1)"
    assert set(private_names(source)) == {"torch._C.DispatchKey", "torch._C.DispatchKey.CPU", "torch._C._nn.flat"}


def test_every_private_name_stands_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files()
        for name in private_names(path.read_text(encoding="utf-8"))
        # A name that is only the beginning of a longer one is on the page with that one.
        if f"`{name.removeprefix('torch.')}`" not in page and f"`{name.removeprefix('torch.')}." not in page
    }
    assert sorted(missing) == []
