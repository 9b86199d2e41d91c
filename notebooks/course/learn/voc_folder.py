"""A small VOC folder of digit scenes, and the faults that real annotation folders have, planted one by one."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

from frcnn_lite.data import DetectionDataset, Scene


def write_voc(folder: Path, scenes: DetectionDataset, names: Sequence[str] | None = None) -> list[str]:
    """Write every scene as JPEGImages/NAME.png and Annotations/NAME.xml; gives the names.

    Boxes are rounded to whole pixels and counted from 1, both ends inside, as VOC has them.
    """
    named = list(names or [f"{index:04}" for index in range(len(scenes))])
    for part in ("JPEGImages", "Annotations"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(named):
        scene = scenes[index]
        Image.fromarray(scene.image.permute(1, 2, 0).numpy()).save(folder / "JPEGImages" / f"{name}.png")
        _annotation(scene, name, scenes.class_names).write(folder / "Annotations" / f"{name}.xml")
    return named


def _annotation(scene: Scene, name: str, class_names: Sequence[str]) -> ElementTree.ElementTree:
    root = ElementTree.Element("annotation")
    ElementTree.SubElement(root, "filename").text = f"{name}.png"
    size = ElementTree.SubElement(root, "size")
    for side, length in zip(("height", "width"), scene.image.shape[1:], strict=True):
        ElementTree.SubElement(size, side).text = str(length)
    for box, label in zip(scene.boxes.round().int().tolist(), scene.labels.tolist(), strict=True):
        thing = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(thing, "name").text = class_names[label]
        corners = ElementTree.SubElement(thing, "bndbox")
        for edge, value in zip(("xmin", "ymin", "xmax", "ymax"), (box[0] + 1, box[1] + 1, *box[2:]), strict=True):
            ElementTree.SubElement(corners, edge).text = str(value)
    return ElementTree.ElementTree(root)


def plant_faults(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Damage the first seven of `names`, each in another way; gives what was done to which.

    Raises ValueError for fewer than seven names.
    """
    faults = {
        "the image is cut off": lambda name: _cut(folder / "JPEGImages" / f"{name}.png"),
        "a box without width": lambda name: _edit(folder, name, xmax="xmin"),
        "a box that is not a number": lambda name: _edit(folder, name, ymin="nan"),
        "a box outside the picture": lambda name: _edit(folder, name, xmax="900"),
        "a class nobody listed": lambda name: _rename(folder, name),
        "an annotation of another picture": lambda name: _edit_size(folder, name),
        "no objects at all": lambda name: _empty(folder, name),
    }
    if len(names) < len(faults):
        raise ValueError(f"names must hold at least {len(faults)}, got {len(names)}")
    for name, damage in zip(names, faults.values(), strict=False):
        damage(name)
    return dict(zip(names, faults, strict=False))


def _cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def _edit(folder: Path, name: str, **edges: str) -> None:
    """Give the first box's edges the texts named, or another edge's text."""
    tree, file = _open(folder, name)
    box = tree.find("object/bndbox")
    for edge, text in edges.items():
        box.find(edge).text = box.findtext(text, text)  # type: ignore[union-attr]
    tree.write(file)


def _rename(folder: Path, name: str) -> None:
    tree, file = _open(folder, name)
    tree.find("object/name").text = "smudge"  # type: ignore[union-attr]
    tree.write(file)


def _edit_size(folder: Path, name: str) -> None:
    tree, file = _open(folder, name)
    tree.find("size/width").text = "640"  # type: ignore[union-attr]
    tree.write(file)


def _empty(folder: Path, name: str) -> None:
    tree, file = _open(folder, name)
    for thing in tree.findall("object"):
        tree.getroot().remove(thing)
    tree.write(file)


def _open(folder: Path, name: str) -> "tuple[ElementTree.ElementTree[ElementTree.Element], Path]":
    file = folder / "Annotations" / f"{name}.xml"
    return ElementTree.parse(file), file
