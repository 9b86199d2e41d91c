"""The house rules of docs/architecture.md that hold for every file of the package."""

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "frcnn_lite"
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]

LEVELS = (
    {"whole_file", "live"},
    {"vgpu", "ops", "layers"},
    {"parallel", "detection", "data"},
    {"engine", "export"},
    {"viz", "learn"},
    {"tools", "notebook", "cli"},
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
KNOW_VGPU = {"vgpu", "notebook", "cli", "tools"}
TORCH_FREE = {"frcnn_lite/__init__.py", "packages/multigpu/src/multigpu/doctor/__init__.py"}
TORCH_FREE |= {str(path.relative_to(ROOT)) for path in FILES if "cli" in path.parts}

FILE_LINES = 250
LONGER = {}  # file -> why it is one concept all the same
PACKAGE_LINES, VGPU_LINES, DETECTOR_LINES = 10_650, 2_400, 2_100
AROUND = ("viz", "learn", "tools")  # figures, exercises' checkers and commands: nobody who trains meets them
AROUND_LINES = 6_250


def layer_of(path: Path) -> str:
    """The layer a file belongs to: its folder in the package, or its own name at the top."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if name == "__main__" else name


def module_of(path: Path) -> list[str]:
    """The dotted name of the package a file's relative imports start from."""
    return [PACKAGE.name, *path.relative_to(PACKAGE).parts[:-1]]


def imports(path: Path, tree: ast.AST, everywhere: bool = True) -> Iterator[tuple[str, int]]:
    """The dotted name and line of every import, or (everywhere=False) of those that run when the file is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module_of(path)[: len(module_of(path)) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            if everywhere or not is_typing:
                yield from imports(path, node, everywhere)


def upward_imports(path: Path, source: str) -> list[str]:
    """Imports of a higher layer, or of a neighbour on the same level; vgpu where it must not be known."""
    own = layer_of(path)
    if own == "__init__":
        return [f"line {line}: {name}" for name, line in imports(path, ast.parse(source))]
    faults = []
    for name, line in imports(path, ast.parse(source)):
        parts = name.split(".")
        if parts[0] != PACKAGE.name or len(parts) < 2 or parts[1] not in LEVEL or parts[1] == own:
            continue
        other = parts[1]
        outside = LEVEL[own] == len(LEVELS) - 1  # commands may call each other
        if LEVEL[other] > LEVEL[own] or (LEVEL[other] == LEVEL[own] and not outside):
            faults.append(f"line {line}: {own} imports {other}, which is not below it")
        if other == "vgpu" and own not in KNOW_VGPU:
            faults.append(f"line {line}: {own} imports vgpu; only {', '.join(sorted(KNOW_VGPU))} know it")
    return faults


def imported_at_top(path: Path, source: str, module: str) -> list[int]:
    """The lines on which importing this file imports `module`."""
    found = imports(path, ast.parse(source), everywhere=False)
    return [line for name, line in found if name.split(".")[0] == module]


def code_lines(source: str) -> int:
    """Lines that hold code: not blank, no comment, no docstring."""
    held: set[int] = set()
    starts = True  # whether the next token starts a statement; a string that does is a docstring
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent and not (starts and token.type == tokenize.STRING):
            held.update(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.NL and token.type != tokenize.COMMENT:
            starts = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return len(held)


def package_code(*folders: str) -> int:
    """Lines of code under some folders of the package; exercises are data."""
    files = {path for folder in folders for path in (PACKAGE / folder).rglob("*.py") if path.parent.name != "exercises"}
    return sum(code_lines(path.read_text(encoding="utf-8")) for path in files)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_file_has_a_layer(path):
    assert layer_of(path) in {*LEVEL, "__init__"}, "give the new layer its place in LEVELS and architecture.md"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_run_downwards(path):
    assert upward_imports(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_torchvision_is_imported_where_it_is_used(path):
    assert imported_at_top(path, path.read_text(encoding="utf-8"), "torchvision") == []


@pytest.mark.parametrize("name", sorted(TORCH_FREE))
def test_file_starts_where_torch_does_not(name):
    path = ROOT / name
    source = path.read_text(encoding="utf-8")
    assert imported_at_top(path, source, "torch") == []


@pytest.mark.parametrize("module", ["frcnn_lite", "multigpu.doctor", "multigpu.explain"])
def test_import_brings_no_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_file_holds_one_concept(path):
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= FILE_LINES or str(path.relative_to(ROOT)) in LONGER, f"{length} lines: split it, or give a reason"


def test_small_is_a_feature():
    around = package_code(*AROUND)
    assert package_code("") - around < PACKAGE_LINES
    assert around < AROUND_LINES
    assert package_code("vgpu") < VGPU_LINES
    assert package_code("detection", "engine") < DETECTOR_LINES


def test_docstrings_comments_and_blank_lines_are_not_code():
    function = '\n\ndef f():\n    """Doc\n    of two lines."""\n    # why\n    return (\n        "text"\n    )\n'
    source = '"""Doc."""\n\nimport os  # why\n' + function
    assert code_lines(source) == 5


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("ops/nms.py", "from frcnn_lite.engine import train", "ops imports engine"),
        ("ops/nms.py", "from ..engine import train", "ops imports engine"),
        ("ops/nms.py", "from .. import engine", "ops imports engine"),
        ("detection/rpn.py", "def f():\n    from frcnn_lite.data import collate", "detection imports data"),
        ("engine/train.py", "import vgpu", "engine imports vgpu"),
        ("ops/layers.py", "from frcnn_lite import layers", "ops imports layers"),
    ],
)
def test_rule_catches_an_import_that_runs_upwards(file, source, fault):
    assert any(fault in found for found in upward_imports(PACKAGE / file, source))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("engine/train.py", "from frcnn_lite.ops import box_iou\nfrom ..detection.rpn import RPN\nimport torch"),
        ("ops/kernels/numba_nms.py", "from ..boxes import box_iou"),
        ("tools/doctor.py", "def check():\n    import vgpu"),
    ],
)
def test_rule_lets_downward_imports_pass(file, source):
    assert upward_imports(PACKAGE / file, source) == []


def test_rule_sees_torchvision_at_the_top_only():
    path = PACKAGE / "ops" / "nms.py"
    assert imported_at_top(path, "try:\n    import torchvision.ops\nexcept ImportError:\n    pass", "torchvision") == [
        2
    ]
    assert imported_at_top(path, "def f():\n    import torchvision", "torchvision") == []
