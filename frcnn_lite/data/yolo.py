"""Folders as the tools around YOLO lay them out: images/a.jpg, and labels/a.txt with one line for each object.

A line is `class x y width height`: the centre and the sides of a box as parts of the upright picture, from 0 at its
left and upper edge to 1 at its right and lower edge. So `(x - width / 2) * pixels` is the left edge of the box in
continuous pixels, as `Object.box` has it, and nothing is added. A line of a class and three points or more,
`class x y x y x y`, is a polygon, and its box is the smallest one around it. The format is described by the pages
<https://docs.ultralytics.com/datasets/detect/> and <https://docs.ultralytics.com/datasets/segment/>.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from frcnn_lite.data.annotated import IMAGE_ENDINGS, Object, Picture, hold_out
from frcnn_lite.data.defects import Defect
from frcnn_lite.data.image_file import upright_size
from frcnn_lite.data.values import number
from frcnn_lite.data.yolo_yaml import CLASS_LISTS, class_list, read_text, split_paths

SPLIT_FOLDERS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
FAR = 1.0  # a number this far outside 0..1 was not meant as a part of the picture
MOST_CLASSES = 10**6


def is_yolo(root: Path) -> bool:
    """Whether a folder that nobody has named the kind of is one of these."""
    return any(any(root.glob(place)) for place in ("data.y*ml", "labels/*.txt", "labels/*/*.txt", "*/labels/*.txt"))


def yolo_splits(root: Path) -> dict[str, list[str]]:
    """The pictures of each split, named by their paths below `root`.

    The splits are those of data.yaml, and folders called train, val (valid, validation) and test. Without pictures to
    judge on there are "all", "train" and a fifth, "test", of what data.yaml names, or else of all. What is in no split
    is "rest".
    Raises FileNotFoundError for a folder without pictures, ValueError for a list that cannot be read.
    """
    names = _pictures(root)
    named = _named_splits(root, names)
    splits = {**_folder_splits(sorted(set(names).difference(*named.values()))), **named}
    if not {"test", "val"} & splits.keys():
        splits |= hold_out({name for split in named.values() for name in split} or names)
    rest = sorted(set(names).difference(*splits.values()))
    return {**splits, "rest": rest} if rest else splits


def yolo_class_names(root: Path, pictures: list[Picture]) -> tuple[str, ...]:
    """The names of the folder's list, by index; without a list the indices that occur in `pictures`, as they are."""
    if names := class_list(root):
        return tuple(names[index] for index in sorted(names))
    return tuple(sorted({thing.name for picture in pictures for thing in picture.objects}, key=int))


def read_yolo(root: Path, names: list[str]) -> tuple[list[Picture], list[Defect]]:
    """The pictures called `names`, those without a label file as pictures without objects, and what is wrong elsewhere.

    A picture with a line that cannot be read is left out: its other objects would teach that this one is background.
    So are pictures that share a label file, a.jpg and a.png: one may be a mask of the other.
    """
    classes, known = class_list(root), {name: _label_of(root, name) for name in _pictures(root)}
    pictures, defects, sharing = [], list(_left_over(root, known)), Counter(known.values())
    for name in names:
        try:
            if name not in known:  # a list of pictures can name what is not there, or is not in the folder
                raise ValueError("the folder has no such picture")
            label = known[name]
            if sharing[label] > 1 and (root / label).is_file():
                raise ValueError(f"{label} could belong to {sharing[label]} pictures, whose endings alone differ")
            size = upright_size(root / name)
        except ValueError as error:
            defects.append(Defect(name, "unreadable", str(error)))
            continue
        objects, wrong = _read_objects(root, label, size, classes)
        defects += wrong
        if not wrong:
            source = label if (root / label).is_file() else f"{name} without {label}"
            pictures.append(Picture(root / name, source, None, tuple(objects), "the centre, width and height"))
    return pictures, defects


def _read_objects(
    root: Path, label: str, size: tuple[int, int], classes: dict[int, str]
) -> tuple[list[Object], list[Defect]]:
    file = root / label
    objects, wrong = [], []
    try:
        lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines() if file.is_file() else []
    except OSError as error:
        return [], [Defect(label, "unreadable", f"the label file cannot be opened: {error.strerror}")]
    for count, line in enumerate(lines, start=1):
        try:
            if line.strip():
                objects.append(_read_line(line, size, classes)._replace(where=f":{count}"))
        except ValueError as error:
            wrong.append(Defect(f"{label}:{count}", "unreadable", str(error)))
    return objects, wrong


def _read_line(line: str, size: tuple[int, int], classes: dict[int, str]) -> Object:
    try:
        index, *numbers = (number(text, "") for text in line.split())
    except ValueError:
        raise ValueError(f"a line holds numbers alone, got {line.strip()[:80]!r}") from None
    if not index.is_integer() or not 0 <= index <= MOST_CLASSES:
        raise ValueError(f"a class is a whole number from 0 on, got {index:g}")
    if len(numbers) != 4 and (len(numbers) < 6 or len(numbers) % 2):
        wanted = "5 numbers (class x y width height), or a class and 3 points or more"
        raise ValueError(f"a line has {wanted}; this one has {len(numbers) + 1} numbers")
    if outside := [part for part in numbers if not -FAR <= part <= 1 + FAR]:
        raise ValueError(
            f"{outside[0]:g} is outside 0..1: boxes are parts of the picture's width and height, not pixels"
        )
    if len(numbers) == 4:
        x, y, wide, high = numbers
        edges = x - wide / 2, y - high / 2, x + wide / 2, y + high / 2
    else:
        columns, rows = numbers[::2], numbers[1::2]
        edges = min(columns), min(rows), max(columns), max(rows)
    left, top, right, bottom = (edge * pixels for edge, pixels in zip(edges, size * 2, strict=True))
    name = classes.get(int(index), f"class {int(index)}") if classes else str(int(index))
    return Object((left, top, right, bottom), name)


def _pictures(root: Path) -> list[str]:
    """All pictures: below images/ and train/images/ where there are such folders, or else in `root` and its folders."""
    places = _folders(root, "images")
    # The folders of splits may be links, which "**" alone does not follow.
    below = [file for place in places for pattern in ("*", "*/**/*") for file in place.glob(pattern)]
    files = below or [*root.glob("*"), *root.glob("*/*")]
    names = sorted(file.relative_to(root).as_posix() for file in files if file.suffix.lower() in IMAGE_ENDINGS)
    if not names:
        deeper = next((place.parent for place in root.glob("*/images")), None)
        hint = f"; is it {deeper}?" if deeper else ""
        raise FileNotFoundError(f"{root} holds no pictures, looked for in images, train/images and beside labels{hint}")
    return names


def _folders(root: Path, name: str) -> list[Path]:
    """The folders called `name` in `root` and in those of its folders that are splits."""
    of_splits = (folder for folder in sorted(root.glob(f"*/{name}")) if folder.parent.name.lower() in SPLIT_FOLDERS)
    return [folder for folder in (root / name, *of_splits) if folder.is_dir()]


def _label_of(root: Path, name: str) -> str:
    """In labels/ where the picture is in images/, or else beside it."""
    beside = PurePosixPath(name).with_suffix(".txt")
    parts = list(beside.parts)
    if "images" in parts:
        parts[len(parts) - 1 - parts[::-1].index("images")] = "labels"
    apart = PurePosixPath(*parts)
    places = [place.with_suffix(ending) for ending in (".txt", ".TXT") for place in (apart, beside)]
    return str(next((place for place in places if (root / place).is_file()), apart))


def _left_over(root: Path, labels: dict[str, str]) -> Iterator[Defect]:
    """Defects of label files and of places in data.yaml that have no picture. labels: the file of each picture."""
    used = set(labels.values())
    for file in (file for folder in _folders(root, "labels") for file in sorted(folder.rglob("*.[tT][xX][tT]"))):
        label = file.relative_to(root).as_posix()
        if label not in used and file.name not in CLASS_LISTS:
            yield Defect(label, "unreadable", "there is no picture for this label file")
    for split, path in ((split, path) for split, paths in split_paths(root).items() for path in paths):
        if not _pictures_at(root, path, list(labels)):
            yield Defect(f"{split}: {path}", "unreadable", "data.yaml names this place, and no picture is there")


def _folder_splits(names: list[str]) -> dict[str, list[str]]:
    splits: dict[str, list[str]] = {}
    for name in names:
        folders = [part for part in PurePosixPath(name).parts[:-1] if part != "images"]
        if folders and folders[0].lower() in SPLIT_FOLDERS:
            splits.setdefault(SPLIT_FOLDERS[folders[0].lower()], []).append(name)
    return splits


def _named_splits(root: Path, names: list[str]) -> dict[str, list[str]]:
    """The splits of data.yaml. One that repeats "train" is left out: nothing can be judged on what was trained on."""
    splits: dict[str, list[str]] = {}
    for split, paths in split_paths(root).items():
        found = [name for path in paths for name in _pictures_at(root, path, names)]
        if found and found != splits.get("train"):
            splits[split] = list(dict.fromkeys(found))
    return splits


def _pictures_at(root: Path, path: str, names: list[str]) -> list[str]:
    """The pictures in the folder, or of the list, that data.yaml gives as `path`.

    Paths there begin at various places, a data set's folder or the one above it, so what stands in front is tried away.
    """
    if path.endswith(".txt"):
        file, known = root / PureWindowsPath(path).name, set(names)
        if not file.is_file():
            raise ValueError(f"{root}: data.yaml names a list of pictures, {path}, and there is no {file.name}")
        lines = filter(str.strip, read_text(file).splitlines())
        return [next((end for end in _ends(line.strip()) if end in known), line.strip()) for line in lines]
    inside = ([name for name in names if name.startswith(f"{end}/")] for end in _ends(path))
    return next(filter(None, inside), [])


def _ends(path: str) -> list[str]:
    """ "a/b/c", "b/c", "c" of "../a/b/c", but never without the name of a split: that is "train/c" of "a/train/c"."""
    parsed = PureWindowsPath(path)  # knows both kinds of slashes, and drives
    parts = [part for part in parsed.parts if part not in ("..", parsed.anchor)]
    kept = next((place for place, part in enumerate(parts) if part.lower() in SPLIT_FOLDERS), len(parts) - 1)
    return ["/".join(parts[start:]) for start in range(kept + 1)]
