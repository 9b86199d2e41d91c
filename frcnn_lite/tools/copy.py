"""Take a helper home: `python -m frcnn_lite copy NAME [--out DIR]` writes NAME.py, and test_NAME.py where it can.

NAME is a public function or class, or a whole file such as `parallel/balance`. NAME.py holds it and what it needs, with
its source and licence; it imports nothing of this package. The tests are those of the package that need nothing but
NAME.py: often a part of them, sometimes none. How many came along is said, and stands in the file.
"""

import argparse
import difflib
import importlib.metadata
import re
import sys
from contextlib import ExitStack
from pathlib import Path

from frcnn_lite import __version__
from frcnn_lite.tools.amalgamate import PACKAGE, Amalgam, NotCopyable, renamed
from frcnn_lite.tools.modules import Module, load
from frcnn_lite.whole_file import whole_file

LAYERS = ("ops", "layers", "parallel", "export")  # made to be taken; the rest of the package is read where it stands
TESTS = PACKAGE.parent / "tests"


def helpers() -> dict[str, Module]:
    """Every public function and class of the layers, with the file it is public in."""
    found: dict[str, Module] = {}
    for layer in LAYERS:
        front = load(PACKAGE / layer / "__init__.py", f"{PACKAGE.name}.{layer}")
        found |= {name: front for name, wanted in front.imports.items() if wanted.module.startswith(front.dotted)}
    return found


def files() -> dict[str, str]:
    """Every file of the layers, `parallel/balance` to its dotted name."""
    paths = (path for layer in LAYERS for path in sorted((PACKAGE / layer).glob("[!_]*.py")))
    return {f"{path.parent.name}/{path.stem}": f"{PACKAGE.name}.{path.parent.name}.{path.stem}" for path in paths}


def home_of(amalgam: Amalgam, name: str) -> Module:
    """The file that `name` is defined in, among those of an amalgam."""
    (home,) = (
        module for module in amalgam.modules() if any(name in statement.binds for statement in module.statements)
    )
    return home


def file_name(name: str) -> str:
    """`nms_mask` stays, `GroupLinear` becomes `group_linear`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def licence() -> str:
    """The text that has to travel with a copy."""
    beside = PACKAGE.parent / "LICENSE"
    if beside.exists():
        return beside.read_text(encoding="utf-8")
    installed = importlib.metadata.distribution(PACKAGE.name).read_text("licenses/LICENSE")
    return installed or "MIT licence; see the project."


def copied_helper(name: str, home: Module, amalgam: Amalgam) -> str:
    """The text of NAME.py, for what is defined in the file `home`."""
    source = home.path.relative_to(PACKAGE.parent).as_posix()
    body = amalgam.body()
    head = [f"# {name}: copied from {source} of {PACKAGE.name} {__version__}; the licence stands at the end."]
    for kernel in sorted(set(re.findall(r'compiled\("(\w+)"\)', body))):
        file = PACKAGE / "ops" / "kernels" / f"numba_{kernel}.py"
        if f"from {PACKAGE.name}" not in file.read_text(encoding="utf-8"):  # else it cannot leave the package
            place = file.relative_to(PACKAGE.parent).as_posix()
            head.append(f"# Faster on the CPU with {place} beside this file, the same without.")
    end = "\n".join(f"# {line}".rstrip() for line in licence().strip().splitlines())
    foreign = {item.module.split(".")[0] for item in amalgam.external} - sys.stdlib_module_names - {"__future__"}
    head.append(f"# It needs {' and '.join(sorted(foreign)) or 'nothing but Python'}.")
    text = "\n".join([*head, quoted(home.docstring), "", body, "", end, ""])
    return renamed(text, file_name(name.rsplit("/")[-1]))


def quoted(docstring: str) -> str:
    """A docstring as it is written: the closing quotes on a line of their own after more than one line."""
    end = "\n" if "\n" in docstring else ""
    return f'"""{docstring}{end}"""'


def copied_tests(file: str, names: set[str], home: Module, amalgam: Amalgam) -> str:
    """The text of test_NAME.py: the tests that need nothing that was not copied; empty when there are none."""
    layer = home.dotted.split(".")[1]
    paths = sorted((TESTS / layer).glob("test_*.py"))
    taken = [text for path in paths if (text := tests_of(path, file, names, amalgam))]
    return "\n\n".join(taken)


def tests_of(path: Path, file: str, names: set[str], copied: Amalgam) -> str:
    """The tests of one file that speak of one of `names` and need only what was copied, and their own helpers."""
    module = load(path, f"tests.{path.stem}")
    chosen = Amalgam(module)
    for statement in module.statements:
        is_test = any(bound.startswith("test_") for bound in statement.binds)
        if not is_test:
            continue
        alone = Amalgam(module)
        try:
            alone.add_statement(module, statement)
        except NotCopyable:
            continue
        own, others = alone.kept.pop(module.dotted), alone.names()
        source = "\n".join(part.source for part in own)
        if path.name in source or any((path.parent / f"{item.module}.py").exists() for item in alone.external):
            continue  # it is about the place where it stands, or needs a file beside it
        if names & {bound for _, bound in others} and others <= copied.names() and not stray(source, copied):
            chosen.add_statement(module, statement)
    if not chosen.kept:
        return ""
    own = chosen.kept[module.dotted]
    used = {word for statement in own for word in statement.needs}
    inside = sorted(
        bound for bound, item in module.imports.items() if bound in used and item.module.startswith(PACKAGE.name)
    )
    chosen.kept = {module.dotted: own}
    chosen.external = {item for item in chosen.external if item.bound in used}  # those of the helper stand in its file
    outside, *rest = chosen.body().split("\n\n\n")
    count = sum(any(bound.startswith("test_") for bound in statement.binds) for statement in own)
    whole = sum(any(bound.startswith("test_") for bound in statement.binds) for statement in module.statements)
    source = path.relative_to(TESTS.parent).as_posix()
    about = (
        f"{count} of the {whole} tests of {source} in {PACKAGE.name} {__version__}: those that need {file}.py alone."
    )
    head = f"{quoted(about)}\n\n{outside}\n\nfrom {file} import {', '.join(inside)}"
    text = "\n\n\n".join([head, *rest])
    for other in copied.kept:
        text = text.replace(f'"{other}"', f'"{file}"')
    return renamed(text, file)


def stray(source: str, copied: Amalgam) -> set[str]:
    """Modules of this package that a test names in a string and that were not copied."""
    return set(re.findall(rf'"({PACKAGE.name}(?:\.\w+)*)"', source)) - set(copied.kept)


def load_into(amalgam: Amalgam, dotted: str) -> Module:
    """Add a whole file, with what it needs."""
    module = amalgam.module(dotted)
    assert module is not None, f"{dotted} is listed and not there"
    for statement in module.statements:
        amalgam.add_statement(module, statement)
    return module


def write_copy(name: str, folder: Path) -> list[Path]:
    """Write NAME.py and its tests into `folder`; returns what was written.

    Raises:
        ValueError: no such helper, or one that cannot stand in a file of its own.
        FileExistsError: one of the files is there already; then nothing is written.
        WriteError: the system does not let one of them be written; then neither is there.
    """
    known, amalgam = helpers(), Amalgam()
    if name in known:
        amalgam.add(known[name], name)
        home, names = home_of(amalgam, name), {name}
    elif name in files():
        home = load_into(amalgam, files()[name])
        names = {bound for statement in home.statements for bound in statement.binds if not bound.startswith("_")}
    else:
        near = difflib.get_close_matches(name, [*known, *files()], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`copy` without a name lists them all"
        raise ValueError(f"no helper is called {name!r}; {hint}")
    file = file_name(name.rsplit("/")[-1])
    texts = {
        folder / f"{file}.py": copied_helper(name, home, amalgam),
        folder / f"test_{file}.py": copied_tests(file, names, home, amalgam),
    }
    texts = {path: text for path, text in texts.items() if text}
    for path in texts:
        if path.exists():
            raise FileExistsError(f"{path} exists already; nothing was written. Choose another folder with --out")
    with ExitStack() as both:
        for path, text in texts.items():
            both.enter_context(whole_file(path)).write_text(text, encoding="utf-8")
    return list(texts)


def main(argv: list[str] | None = None) -> int:
    """Write a helper into a file of its own, or list the helpers."""
    parser = argparse.ArgumentParser(prog="python -m frcnn_lite copy", description=main.__doc__)
    parser.add_argument(
        "name",
        nargs="?",
        help="a public function or class, or a file such as parallel/balance (default: all are listed)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="where to write (default: the current folder)"
    )
    options = parser.parse_args(argv)
    if options.name is None:
        for layer in LAYERS:
            names = [name for name, front in helpers().items() if front.dotted.endswith(f".{layer}")]
            print(f"{layer}: {', '.join(sorted(names))}")
        return 0
    try:
        helper, *tests = write_copy(options.name, options.out)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(*[helper, *tests], sep="\n")
    if not tests:
        print(f"no tests come with it: the package has none that needs nothing but {helper.name}", file=sys.stderr)
    for path in tests:
        for line in re.findall(r'^"""(\d+ of the \d+ tests of .*)"""$', path.read_text(encoding="utf-8"), re.MULTILINE):
            print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
