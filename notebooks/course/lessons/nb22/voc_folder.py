"""A small VOC folder of digit scenes, the faults that real folders have, planted one by one, and edits of its files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

from frcnn_lite.data import DetectionDataset, Scene

EDGES = ("xmin", "ymin", "xmax", "ymax")


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
        _append(root, class_names[label], (box[0] + 1, box[1] + 1, *box[2:]))
    return ElementTree.ElementTree(root)


def _append(root: ElementTree.Element, name: str, edges: Sequence[int]) -> None:
    thing = ElementTree.SubElement(root, "object")
    ElementTree.SubElement(thing, "name").text = name
    corners = ElementTree.SubElement(thing, "bndbox")
    for edge, value in zip(EDGES, edges, strict=True):
        ElementTree.SubElement(corners, edge).text = str(value)


def plant_faults(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Damage seven pictures, each in a different way; gives what was done to which.

    Raises ValueError unless `names` are seven.
    """
    faults: dict[str, Callable[[str], None]] = {
        "a picture that is cut off": lambda name: _cut(folder / "JPEGImages" / f"{name}.png"),
        "a box without width": lambda name: edit(folder, name, 0, xmax=_edge(folder, name, "xmin")),
        "a coordinate that is nan": lambda name: edit(folder, name, 0, ymin="nan"),
        "a box beyond the picture": lambda name: edit(folder, name, 0, xmax="900"),
        "a name that nobody listed": lambda name: edit(folder, name, 0, name="smudge"),
        "boxes of a smaller copy": lambda name: rescale(folder, name, 0.5),
        "no objects": lambda name: _empty(folder, name),
    }
    if len(names) != len(faults):
        raise ValueError(f"`names` must be {len(faults)}, one for each fault, got {len(names)}")
    for name, damage in zip(names, faults.values(), strict=True):
        damage(name)
    return dict(zip(names, faults, strict=True))


def edit(folder: Path, name: str, number: int, /, **texts: object) -> None:
    """Write new texts into object `number` of the annotation `name`: of its edges, or of its `name`.

    Raises IndexError if there is no such object, KeyError for a text that it does not have.
    """
    tree, file = _open(folder, name)
    thing = tree.findall("object")[number]
    for tag, text in texts.items():
        element = thing.find(tag) if tag == "name" else thing.find(f"bndbox/{tag}")
        if element is None:
            raise KeyError(tag)
        element.text = str(text)
    tree.write(file)


def add(folder: Path, name: str, class_name: str, edges: Sequence[int]) -> None:
    """Write one more object into the annotation `name`; edges: xmin, ymin, xmax, ymax as VOC counts them."""
    tree, file = _open(folder, name)
    _append(tree.getroot(), class_name, edges)
    tree.write(file)


def rescale(folder: Path, name: str, factor: float) -> None:
    """Multiply the size of the picture and all edges of its boxes, as if it had been annotated at that size."""
    tree, file = _open(folder, name)
    for tag in ("width", "height"):
        for element in tree.iter(tag):
            element.text = str(round(factor * float(element.text or 0)))
    for corners in tree.iter("bndbox"):
        for tag, element in ((element.tag, element) for element in corners):
            start = tag in ("xmin", "ymin")  # VOC counts from 1, so the left edge of pixel n lies at n - 1
            element.text = str(round(factor * (float(element.text or 0) - start)) + start)
    tree.write(file)


def rename(folder: Path, words: Sequence[str]) -> None:
    """In every annotation, call the digits by their words: 0 by the first, and so on."""
    for file in sorted((folder / "Annotations").glob("*.xml")):
        tree, _ = _open(folder, file.stem)
        for element in tree.iterfind("object/name"):
            element.text = words[int(element.text or "")]
        tree.write(file)


def remove(folder: Path, name: str) -> None:
    """Take a picture and its annotation out of the folder."""
    (folder / "JPEGImages" / f"{name}.png").unlink()
    (folder / "Annotations" / f"{name}.xml").unlink()


def _cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def _edge(folder: Path, name: str, tag: str) -> str:
    """The text of an edge of the first object."""
    tree, _ = _open(folder, name)
    return tree.findtext(f"object/bndbox/{tag}", "")


def _empty(folder: Path, name: str) -> None:
    tree, file = _open(folder, name)
    for thing in tree.findall("object"):
        tree.getroot().remove(thing)
    tree.write(file)


def _open(folder: Path, name: str) -> "tuple[ElementTree.ElementTree[ElementTree.Element], Path]":
    file = folder / "Annotations" / f"{name}.xml"
    return ElementTree.parse(file), file
