"""Folders as PASCAL VOC lays them out: Annotations/ID.xml, JPEGImages/ID.jpg, ImageSets/Main/SPLIT.txt.

M. Everingham et al., "The PASCAL Visual Object Classes Challenge 2007 Development Kit". Many tools write the same
files into folders of other names, without lists; those are found too.
"""

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from frcnn_lite.data.annotated import IMAGE_ENDINGS, Object, Picture, hold_out, images_in, path_inside
from frcnn_lite.data.defects import Defect

IMAGE_FOLDERS = ("JPEGImages", "PNGImages", "images", "Images", "")
ANNOTATION_FOLDERS = ("Annotations", "annotations", "annots", "labels", "")


def voc_splits(root: Path) -> dict[str, list[str]]:
    """The names of the pictures in each split: those of ImageSets/Main, or else "all", "train" and a fifth, "test".

    Lists that name nothing to judge on, neither "test" nor "val", are only taken to say which pictures there are.
    Raises FileNotFoundError for a folder without annotations.
    """
    lists = {file.stem: file for file in sorted((root / "ImageSets" / "Main").glob("*.txt"))}
    # CLASS_SPLIT.txt says for every picture of SPLIT whether it has the class: no split of its own
    whole = {
        name: _read_list(file)
        for name, file in lists.items()
        if name.rpartition("_")[2] not in lists or "_" not in name
    }
    if {"test", "val"} & whole.keys():
        return whole
    folder = _folder(root, ANNOTATION_FOLDERS, (".xml",))
    listed = {name for names in whole.values() for name in names}
    return {**whole, **hold_out(listed or (file.stem for file in folder.glob("*.xml")))}


def voc_class_names(root: Path, pictures: list[Picture]) -> tuple[str, ...]:
    """The names that occur in `pictures`, sorted: these folders have no list of them."""
    return tuple(sorted({thing.name for picture in pictures for thing in picture.objects} - {""}))


def read_voc(root: Path, names: list[str]) -> tuple[list[Picture], list[Defect]]:
    """The pictures called `names`, and what is wrong with the annotations of the others."""
    annotations = _folder(root, ANNOTATION_FOLDERS, (".xml",))
    images = _folder(root, IMAGE_FOLDERS, IMAGE_ENDINGS)
    pictures, defects = [], []
    for name in names:
        try:
            pictures.append(_read_picture(path_inside(annotations, f"{name}.xml"), images))
        except (OSError, ValueError, expat.ExpatError) as error:
            defects.append(Defect(f"{annotations.name}/{name}.xml", "unreadable", str(error)))
    return pictures, defects


def voc_unannotated(root: Path, pictures: list[Picture]) -> list[str]:
    """The images that have no annotation, by file name; `pictures` are those that were read."""
    annotated = {file.stem for file in _folder(root, ANNOTATION_FOLDERS, (".xml",)).glob("*.xml")}
    used = {picture.file for picture in pictures}  # an annotation can name an image that is called otherwise
    files = images_in(_folder(root, IMAGE_FOLDERS, IMAGE_ENDINGS))
    return [file.name for file in files if file.stem not in annotated and file not in used]


def parse_xml(text: bytes) -> Element:
    """The root of a document without a document type: what defines entities, which can grow without end, is refused.

    Raises ValueError or ExpatError.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, _refuse_doctype
    parser.Parse(text, True)
    return builder.close()


def _refuse_doctype(*_: object) -> None:
    raise ValueError("the file declares a document type; an annotation needs none")


def _read_list(file: Path) -> list[str]:
    lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


def _read_picture(file: Path, images: Path) -> Picture:
    root = parse_xml(file.read_bytes())
    size = root.find("size")
    width, height = (_number(size, side) if size is not None else 0.0 for side in ("width", "height"))
    known = width > 0 and height > 0  # some tools write 0 x 0
    return Picture(
        _image_of(file.stem, root.findtext("filename", ""), images),
        f"{file.parent.name}/{file.name}",
        (int(width), int(height)) if known else None,
        tuple(_read_object(element) for element in root.iter("object")),
    )


def _image_of(stem: str, name: str, images: Path) -> Path:
    """The image of the annotation's own name; the name written inside is often of another machine."""
    for ending in IMAGE_ENDINGS:
        for path in (images / f"{stem}{ending}", images / f"{stem}{ending.upper()}"):
            if path.is_file():
                return path
    path = path_inside(images, name or f"{stem}.jpg")
    if not path.is_file():
        raise ValueError(f"there is no image {images.name}/{stem}.* and none called {name!r}")
    return path


def _read_object(element: Element) -> Object:
    """VOC counts pixels from 1 and its boxes include their last one, so that 1..1 is one pixel: 0 to 1."""
    box = element.find("bndbox")
    if box is None:
        raise ValueError("an object has no bndbox")
    xmin, ymin, xmax, ymax = (_number(box, name) for name in ("xmin", "ymin", "xmax", "ymax"))
    # A box that ends where it starts is one pixel by that rule, and in practice a slip of the mouse: no area.
    left, top = (low if high <= low else low - 1 for low, high in ((xmin, xmax), (ymin, ymax)))
    name = (element.findtext("name") or "").strip()
    return Object((left, top, xmax, ymax), name, ignored=element.findtext("difficult", "0").strip() == "1")


def _number(element: Element, name: str) -> float:
    text = (element.findtext(name) or "").strip()
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} is not a number: {text!r}") from None


def _folder(root: Path, names: tuple[str, ...], endings: tuple[str, ...]) -> Path:
    """The first of the folders called `names` that holds files with one of `endings`."""
    for name in names:
        folder = root / name
        if folder.is_dir() and any(file.suffix.lower() in endings for file in folder.iterdir()):
            return folder
    wanted = ", ".join(name or "the folder itself" for name in names)
    deeper = next((file.parent for depth in (1, 2, 3) for file in root.glob("*/" * depth + "*.xml")), root)
    within = deeper.parent if deeper.name in ANNOTATION_FOLDERS else deeper
    hint = "" if within == root else f"; is it {within}?"
    raise FileNotFoundError(f"{root} holds no {endings[0]} files, looked for in: {wanted}{hint}")
