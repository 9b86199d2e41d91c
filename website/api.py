"""The API as pages: one for each module that others use, its text from the docstrings."""

import importlib

MODULES = {
    "frcnn_lite": ("ops", "layers", "parallel", "recipes", "detection", "data", "engine", "export"),
    "vgpu": ("",),
    "multigpu": ("explain", "failures", "lint.finding"),
}
RECIPES = ("determinism", "inplace", "param_groups", "schedules")  # files to copy, each of which stands alone
ORDER = "PYTEST_DONT_REWRITE"  # a last paragraph that begins with this word
INDEX = """\
# The API

What other programs may import, from the docstrings. Commands say what they do themselves:
`python -m frcnn_lite --help`, `python -m vgpu --help`, `python -m multigpu --help`.

"""


def pages() -> dict[str, str]:
    """reStructuredText of each module's page by the module's name."""
    found = {}
    for package, names in MODULES.items():
        for name in names:
            module = f"{package}.{name}".rstrip(".")
            parts = [f"{module}.{file}" for file in RECIPES] if name == "recipes" else [module]
            found[module] = "\n".join([module, "=" * len(module), "", *map(documented, parts)])
    return found


def documented(module: str) -> str:
    """A module's docstring and those of its public names; `__all__` lists them where a module gathers other files'."""
    gathers = "   :imported-members:\n" if hasattr(importlib.import_module(module), "__all__") else ""
    return f".. automodule:: {module}\n   :members:\n{gathers}"


def with_code(app: object, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Mark the programs of a docstring as code: blocks indented by four after an empty line. Called by autodoc.

    A paragraph that is an order to pytest is nothing for readers.
    """
    if ORDER in "\n".join(lines):
        del lines[next(k for k, line in enumerate(lines) if ORDER in line) :]
    lines[:] = with_returns(lines)
    marked: list[str] = []
    for k, line in enumerate(lines):
        inside = bool(marked) and lines[k - 1].startswith("    ")
        if line.startswith("    ") and not inside and k and not lines[k - 1]:
            marked += [".. code-block:: python", ""]
        marked.append(line)
    lines[:] = marked


def with_returns(lines: list[str]) -> list[str]:
    """A docstring whose `Returns:` is a field: otherwise what stands before its first colon is taken for a type."""
    made: list[str] = []
    begins = inside = False
    for line in lines:
        inside = inside and line.startswith("    ")
        if line == "Returns:":
            begins = inside = True
        elif inside:
            made.append(f":returns: {line.strip()}" if begins else line)
            begins = False
        else:
            made.append(line)
    return made


def index() -> str:
    """The list of the modules, each with the first line of its docstring."""
    lines = []
    for module in pages():
        said = (importlib.import_module(module).__doc__ or "").partition("\n")[0]
        lines.append(f"- [`{module}`]({module}.rst): {said}")
    return INDEX + "\n".join(lines)
