"""A YOLO folder's words about itself, in data.yaml or in a list with one class a line: its classes and its splits."""

from pathlib import Path
from typing import Any

import yaml

YAML_FILES = ("data.yaml", "data.yml", "dataset.yaml")
CLASS_LISTS = ("classes.txt", "obj.names", "labels/classes.txt")


class Loader(yaml.BaseLoader):
    """Words, lists and mappings alone: nothing in the file is run, and a class "no" stays a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Raises yaml's error for a key that is there twice, of which yaml would take the last."""
        found = super().construct_mapping(node, deep=True)
        if len(found) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key is there twice", node.start_mark)
        return found


def class_list(root: Path) -> dict[int, str]:
    """The names of the classes by index, none where the folder has no list of them.

    Raises ValueError for a list that cannot be read, one that names a class twice, and labels of keypoints.
    """
    file, entries = _read(root)
    if "kpt_shape" in entries:
        raise ValueError(f"{file}: these labels hold keypoints (kpt_shape), which are not read")
    names = {}
    if "names" in entries:
        names = _by_index(file, entries["names"])
    elif lists := [root / name for name in CLASS_LISTS if (root / name).is_file()]:
        file = lists[0]
        names = {index: line.strip() for index, line in enumerate(read_text(file).splitlines()) if line.strip()}
    if twice := sorted(name for name in set(names.values()) if list(names.values()).count(name) > 1):
        raise ValueError(f"{file} names the class {twice[0]!r} twice")
    return names


def split_paths(root: Path) -> dict[str, list[str]]:
    """The entries train, val and test of data.yaml: paths of folders, or of lists of pictures, as they are written.

    Raises ValueError for anything but one path or a list of them.
    """
    file, entries = _read(root)
    paths = {}
    for split in ("train", "val", "test"):
        given = [] if entries.get(split) in (None, "", "null", "~") else entries[split]  # so written: no such split
        paths[split] = given if isinstance(given, list) else [given]
        if not all(isinstance(path, str) for path in paths[split]):
            raise ValueError(f"{file}: {split} must be a path or a list of paths, got {given}")
    return {split: given for split, given in paths.items() if given}


def read_text(file: Path) -> str:
    """Raises ValueError that names a file which is not text in UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not text in UTF-8: {error}") from error


def _read(root: Path) -> tuple[Path, dict[str, Any]]:
    """data.yaml and its entries; no entries where there is no such file."""
    file = next((root / name for name in YAML_FILES if (root / name).is_file()), root / YAML_FILES[0])
    try:
        entries = yaml.load(read_text(file), Loader) if file.is_file() else {}
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{file} must hold entries such as `names: [dog, cat]`, got {str(entries)[:40]!r}")
    return file, entries


def _by_index(file: Path, names: Any) -> dict[int, str]:
    """The classes of a list, or of a mapping from their numbers."""
    pairs = list(names.items() if isinstance(names, dict) else enumerate(names) if isinstance(names, list) else [])
    if not pairs or not all(isinstance(name, str) and str(index).isdecimal() for index, name in pairs):
        raise ValueError(f"{file}: names must be a list of words or a mapping from numbers to words, got {names}")
    found = {int(index): name for index, name in pairs}
    if len(found) < len(pairs):
        raise ValueError(f"{file}: names must give each number once, got {names}")
    return found
