"""Copy one helper, which is one file, into your project, with its tests; without a name, list the helpers.

  python -m frcnn_lite copy
  python -m frcnn_lite copy chunks
  python -m frcnn_lite copy share --out ../elsewhere

The name is a file of the list, such as `chunks`, or a function or class in one, such as `share`. The copy says where it
is from and carries the licence. The tests need torch and pytest, and run in the folder of the copy; only their import
is changed: `frcnn_lite.parallel.chunks` becomes `chunks`.
"""

import argparse
import ast
import difflib
import importlib.metadata
from contextlib import ExitStack
from pathlib import Path

from frcnn_lite import __version__
from frcnn_lite.whole_file import whole_file

PACKAGE = Path(__file__).resolve().parents[1]
TESTS = PACKAGE.parent / "tests"
LAYERS = ("ops", "layers", "parallel", "recipes", "export")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="helper to copy (default: list them)")
    out = "folder for the copy (default: the current folder)"
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help=out)


def run(options: argparse.Namespace) -> int:
    """Write a helper and its tests, or print the name of each file with the first line of its docstring."""
    if options.name is not None:
        print(*write_copy(options.name.rpartition("/")[2], options.out), sep="\n")
        return 0
    for path in files():
        purpose = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        print(f"{f'{path.parent.name}/{path.stem}':26} {purpose}")
    return 0


def files() -> list[Path]:
    """The helpers, layer by layer. Of `export` those are helpers that import nothing of this package."""
    paths = [path for layer in LAYERS for path in sorted((PACKAGE / layer).glob("[!_]*.py"))]
    return [path for path in paths if path.parent.name != "export" or not imports_of_ours(path)]


def imports_of_ours(path: Path) -> list[str]:
    """The imports of a file from this package, each with its line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [f"line {node.lineno}: {name}" for name in names if name.split(".")[0] in ("", PACKAGE.name)]
    return found


def helpers() -> dict[str, Path]:
    """Every name that can be copied, with its file: the names of the files, and the public names in them."""
    homes = {path.stem: path for path in files()}
    for path in files():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, path)
    return homes


def copied(path: Path) -> str:
    """The text of a helper's copy: where it is from, the file as it is, the licence."""
    source = path.relative_to(PACKAGE.parent).as_posix()
    head = f"# Copied from {source} of {PACKAGE.name} {__version__}; its licence stands at the end."
    end = "\n".join(f"# {line}".rstrip() for line in licence().strip().splitlines())
    return f"{head}\n{path.read_text(encoding='utf-8')}\n\n{end}\n"


def copied_tests(path: Path) -> str:
    """The text of the tests of a helper, which import it from the file beside them."""
    address = ".".join([PACKAGE.name, path.parent.name, path.stem])
    tests = TESTS / path.parent.name / f"test_{path.name}"
    return tests.read_text(encoding="utf-8").replace(address, path.stem) if tests.exists() else ""


def licence() -> str:
    """The text that has to travel with a copy."""
    beside = PACKAGE.parent / "LICENSE"
    if beside.exists():
        return beside.read_text(encoding="utf-8")
    installed = importlib.metadata.distribution(PACKAGE.name).read_text("licenses/LICENSE")
    return installed or "MIT licence; see the project."


def write_copy(name: str, folder: Path) -> list[Path]:
    """Write a helper and its tests into `folder`; returns what was written, the tests only where there are some.

    Raises:
        ValueError: no such helper.
        FileExistsError: one of the files is there already; then nothing is written.
        WriteError: the system does not let one of them be written; then neither is there.
    """
    known = helpers()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`copy` without a name lists them all"
        raise ValueError(f"no helper is called {name!r}; {hint}")
    path = known[name]
    texts = {folder / path.name: copied(path), folder / f"test_{path.name}": copied_tests(path)}
    texts = {path: text for path, text in texts.items() if text}
    for path in texts:
        if path.exists():
            raise FileExistsError(f"{path} exists already; nothing was written. Choose another folder with --out")
    with ExitStack() as both:
        for path, text in texts.items():
            both.enter_context(whole_file(path)).write_text(text, encoding="utf-8")
    return list(texts)
