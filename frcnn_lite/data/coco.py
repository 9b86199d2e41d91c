"""Annotations in one JSON file, as COCO writes them.

T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; format: <https://cocodataset.org/#format-data>.
"""

import json
import os
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from frcnn_lite.data.annotated import Object, Picture, hold_out, images_in, path_inside
from frcnn_lite.data.defects import Defect
from frcnn_lite.data.values import brief, flag, identity, number, refuse_parts, sides

NEEDED = {"images": ("id", "file_name"), "annotations": ("image_id",), "categories": ("id", "name")}


def coco_splits(file: Path) -> dict[str, list[str]]:
    """The names of the pictures in each split: the file is one, "all"; for lack of more "train" and a fifth, "test"."""
    return hold_out({str(image["file_name"]) for image in _load(file)["images"]})


def coco_class_names(file: Path, pictures: list[Picture]) -> tuple[str, ...]:
    """The names of the categories, by rising id; categories of one name are one class."""
    categories = sorted(_load(file)["categories"], key=lambda c: (isinstance(c["id"], str), c["id"]))
    return tuple(dict.fromkeys(_name(category) for category in categories))


def read_coco(file: Path, names: list[str]) -> tuple[list[Picture], list[Defect]]:
    """The pictures called `names`, and what is wrong with the entries of the others. Raises ValueError for the file.

    An image whose id or file a second entry has is left out: nobody knows whose objects are whose.
    """
    content, wanted = _load(file), set(names)
    categories = defaultdict[Any, list[str]](list)
    for category in content["categories"]:
        categories[category["id"]].append(_name(category))
    objects = defaultdict(list)
    for annotation in content["annotations"]:
        objects[annotation["image_id"]].append(annotation)
    folder = _image_folder(file, content["images"])
    ids, files = (Counter(key(image) for image in content["images"]) for key in (lambda i: i["id"], _file_of))
    pictures, defects = [], [*_of_no_image(file, content), *_categories_twice(file, content)]
    for image in content["images"]:
        name = str(image["file_name"])
        if name not in wanted:
            continue
        where, kind = f"{file.name}: {name}", "not_unique"
        try:
            if ids[image["id"]] > 1:
                raise ValueError(f"{ids[image['id']]} images have the id {image['id']!r}")
            if files[_file_of(image)] > 1:
                raise ValueError(f"the file lists this image {files[_file_of(image)]} times")
            kind = "unreadable"
            found = tuple(_read_object(annotation, categories) for annotation in objects[image["id"]])
            size = sides(image.get("width"), image.get("height"))
            pictures.append(Picture(path_inside(folder, name), where, size, found, "a corner, width and height"))
        except ValueError as error:
            defects.append(Defect(where, kind, str(error)))
    return pictures, defects


def coco_unannotated(file: Path, pictures: list[Picture]) -> list[str]:
    """The images beside those of `file` that it does not list, by file name."""
    images = _load(file)["images"]
    listed = {Path(str(image["file_name"])).name for image in images}
    return [path.name for path in images_in(_image_folder(file, images)) if path.name not in listed]


def _name(category: dict[str, Any]) -> str:
    return str(category["name"]).strip()


def _file_of(image: dict[str, Any]) -> str:
    return os.path.normpath(str(image["file_name"]).replace("\\", "/"))


def _of_no_image(file: Path, content: dict[str, Any]) -> list[Defect]:
    """Annotations that belong to an image which the file does not list, a defect for each such image."""
    listed = {image["id"] for image in content["images"]}
    lost = Counter(entry["image_id"] for entry in content["annotations"] if entry["image_id"] not in listed)
    detail = "the file lists no image with this id, and has {} annotations of it"
    return [Defect(f"{file.name}: image_id {k!r}", "unreadable", detail.format(count)) for k, count in lost.items()]


def _categories_twice(file: Path, content: dict[str, Any]) -> list[Defect]:
    """A defect for each id, and for each name, that several categories have."""
    found = []
    for place, values in (
        ("id", Counter(category["id"] for category in content["categories"])),
        ("name", Counter(map(_name, content["categories"]))),
    ):
        where = "{} categories have this {}; those of one name are taken for one class"
        for value, count in values.items():
            if count > 1:
                defect = Defect(f"{file.name}: category {place} {value!r}", "not_unique", where.format(count, place))
                found.append(defect)
    return found


def _read_object(annotation: dict[str, Any], categories: dict[Any, list[str]]) -> Object:
    """COCO's boxes are x, y, width, height in continuous pixels from 0."""
    box = annotation.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"the bbox of an annotation must be four numbers, got {brief(box)}")
    x, y, width, height = (number(value, "a number of the bbox") for value in box)
    if width > 0 and height > 0:
        refuse_parts((x, y, width, height))
    category = identity(annotation.get("category_id"), "category_id")
    names = set(categories.get(category, [f"category {category}"]))
    if len(names) > 1:
        raise ValueError(f"category {category} is called {' and '.join(sorted(names))}")
    crowd, ignored = (flag(annotation.get(name), name) for name in ("iscrowd", "ignore"))
    return Object((x, y, x + width, y + height), names.pop(), ignored=crowd or ignored, crowd=crowd)


def _image_folder(file: Path, images: list[dict[str, Any]]) -> Path:
    """The folder of the images: beside the file, or in a folder that common layouts have for them."""
    subset = file.stem.rpartition("_")[2]  # annotations/instances_val2017.json, val2017/
    places = [
        folder / part
        for folder in (file.parent, file.parent.parent)
        for part in ("", "images", subset, f"images/{subset}")
    ]
    names = [str(image["file_name"]) for image in images[:100]]

    def fits(place: Path) -> tuple[int, bool]:
        return sum(os.path.isfile(place / name) for name in names), bool(images_in(place))

    return max(places, key=fits)


def _load(file: Path) -> dict[str, Any]:
    return _parse(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # COCO's own file has 450 MB, and is asked for its splits, its classes and its pictures
def _parse(file: Path, changed: int) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes(), object_pairs_hook=_object)  # bytes: in UTF-8, 16 or 32, as marked
    except (ValueError, RecursionError) as error:
        repair = "; save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
        raise ValueError(f"{file} cannot be read as COCO annotations: {error}{repair}") from error
    for key, needed in NEEDED.items():
        entries = content.get(key) if isinstance(content, dict) else None
        if not isinstance(entries, list):
            raise ValueError(f"{file} holds no COCO annotations: there must be a list {key!r} of objects")
        for place, entry in enumerate(entries):
            _check_entry(entry, needed, f"{file} cannot be read as COCO annotations: {key}[{place}]")
    for key, reference in (("images", "image_id"), ("categories", "category_id")):
        ids = [entry["id"] for entry in content[key]] + [entry.get(reference) for entry in content["annotations"]]
        kinds = {isinstance(value, str): value for value in ids if isinstance(value, int | float | str)}
        if len(kinds) > 1:
            both = f"{kinds[True]!r} is a text and {kinds[False]!r} a number"
            raise ValueError(f"{file}: the ids of {key!r} must be of one kind, and {both}; write all as numbers")
    return content


def _check_entry(entry: Any, needed: tuple[str, ...], where: str) -> None:
    if not isinstance(entry, dict) or any(name not in entry for name in needed):
        raise ValueError(f"{where} must be an object with {', '.join(needed)}, got {brief(entry)}")
    for name in needed:
        if name == "file_name" and not isinstance(entry[name], str):
            raise ValueError(f"{where}: file_name must be a text, got {brief(entry[name])}")
        identity(entry[name], f"{where}: {name}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"an object of the file has {twice!r} twice")
    return found
