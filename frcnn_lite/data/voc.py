"""Folders as PASCAL VOC lays them out: Annotations/ID.xml, JPEGImages/ID.jpg, ImageSets/Main/SPLIT.txt.

M. Everingham et al., "The PASCAL Visual Object Classes Challenge 2007 Development Kit". Many tools write the same
files into folders of other names, without lists; those are found too.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from frcnn_lite.data.annotated import IMAGE_ENDINGS, Object, Picture, hold_out, path_inside
from frcnn_lite.data.defects import Defect
from frcnn_lite.data.values import flag, number, refuse_parts, sides

IMAGE_FOLDERS = ("JPEGImages", "PNGImages", "images", "Images", "")
ANNOTATION_FOLDERS = ("Annotations", "annotations", "annots", "labels", "")


def voc_splits(root: Path) -> dict[str, list[str]]:
    """The names of the pictures in each split: those of ImageSets/Main, or else "all", "train" and a fifth, "test".

    Lists that name nothing to judge on, neither "test" nor "val", are only taken to say which pictures there are.
    Raises FileNotFoundError for a folder without annotations.
    """
    lists = {file.stem: file for file in sorted((root / "ImageSets" / "Main").glob("*.txt"))}
    files = _annotations(root)
    known = _by_stem(files) | {name: name for name in files}
    # CLASS_SPLIT.txt says for every picture of SPLIT whether it has the class: no split of its own
    whole = {
        name: [known.get(listed, listed) for listed in _read_list(file)]
        for name, file in lists.items()
        if name.rpartition("_")[2] not in lists or "_" not in name
    }
    if {"test", "val"} & whole.keys():
        return whole
    listed = {name for names in whole.values() for name in names}
    return {**whole, **hold_out(listed or files)}


def voc_class_names(root: Path, pictures: list[Picture]) -> tuple[str, ...]:
    """The names that occur in `pictures`, sorted: these folders have no list of them."""
    return tuple(sorted({thing.name for picture in pictures for thing in picture.objects} - {""}))


def read_voc(root: Path, names: list[str]) -> tuple[list[Picture], list[Defect]]:
    """The pictures called `names`, and what is wrong with the annotations of the others."""
    folder, images = _folder(root, ANNOTATION_FOLDERS, (".xml",)), _folder(root, IMAGE_FOLDERS, IMAGE_ENDINGS)
    files, known = _annotations(root), _by_name(images, IMAGE_ENDINGS)
    known = {stem: known[name] for stem, name in _by_stem(known).items()} | known
    pictures, defects = [], []
    for name in names:
        try:
            file = files.get(name) or path_inside(folder, f"{name}.xml")
            pictures.append(_read_picture(file, f"{folder.name}/{file.relative_to(folder)}", name, images, known))
        except (OSError, ValueError, expat.ExpatError) as error:
            defects.append(Defect(f"{folder.name}/{name}.xml", "unreadable", str(error)))
    return pictures, defects


def voc_unannotated(root: Path, pictures: list[Picture]) -> list[str]:
    """The images that have no annotation, and XML files that are not read; `pictures` are those that were read."""
    files, images = _annotations(root), _folder(root, IMAGE_FOLDERS, IMAGE_ENDINGS)
    used = {picture.file for picture in pictures}  # an annotation can name an image that is called otherwise
    alone = [file for name, file in _by_name(images, IMAGE_ENDINGS).items() if not {name, file.stem} & files.keys()]
    listed = {files.get(name) for names in voc_splits(root).values() for name in names}
    unread = sorted(set(_below(root, (".xml",))) - listed)
    names = [file.relative_to(images).as_posix() for file in sorted(alone) if file not in used]
    return names + [
        f"{file.relative_to(root).as_posix()}: no list names it, or its folder is not read" for file in unread
    ]


def _annotations(root: Path) -> dict[str, Path]:
    return _by_name(_folder(root, ANNOTATION_FOLDERS, (".xml",)), (".xml",))


def _below(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """The files with one of `endings`, in whatever case, in `folder` and its subfolders that are not hidden."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if Path(name).suffix.lower() in endings)


def _by_name(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The files below `folder` by their paths there without the ending; of a.jpg and a.png the first of `endings`.

    A second file with the same ending, a.XML beside a.xml, keeps its ending in its name.
    """
    found: dict[str, Path] = {}
    for file in sorted(_below(folder, endings), key=lambda file: (endings.index(file.suffix.lower()), file)):
        name = file.relative_to(folder).as_posix()
        short = name.removesuffix(file.suffix)
        found[short if short not in found else name] = file
    return found


def _by_stem(files: dict[str, Path]) -> dict[str, str]:
    """The names of files in subfolders by their last part, for those with a last part that no other file has."""
    names = defaultdict(list)
    for name in files:
        names[name.rpartition("/")[2]].append(name)
    return {stem: found[0] for stem, found in names.items() if len(found) == 1}


def parse_xml(data: bytes) -> Element:
    """The root of a document that declares no entities, which can grow without end or lead to other files.

    Raises ValueError or ExpatError.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse_entities
    parser.Parse(_text(data), True)
    return builder.close()


def _text(data: bytes) -> str:
    """Decoded here, because expat knows four encodings alone."""
    declared = re.match(rb"""(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""", data)
    encoding = declared[1].decode() if declared else "utf-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif re.match("(?i)utf-?(16|32)|ucs", encoding):  # what could be read above is not in this encoding
        encoding = "utf-8"
    try:
        return data.decode(encoding).lstrip("\ufeff")
    except (ValueError, LookupError) as error:
        why = "as it declares" if declared else "and declares no other encoding"
        raise ValueError(f"the file is not text in {encoding}, {why}: {error}; save it as UTF-8") from error


def _refuse_entities(*_: object) -> None:
    raise ValueError("the file declares a document type with entities, or uses such; an annotation needs none")


def _read_list(file: Path) -> list[str]:
    lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


def _read_picture(file: Path, source: str, name: str, images: Path, known: dict[str, Path]) -> Picture:
    """known: the images by name."""
    root = parse_xml(file.read_bytes())
    if root.tag.lower() not in ("annotation", "annotations"):
        raise ValueError(f"the first element must be annotation, got {root.tag!r}: this is not a file of VOC")
    size, elements = root.find("size"), list(root.iter("object"))
    if any(element.find(".//object") is not None for element in elements):
        raise ValueError("an object holds a second one; write them one after the other")
    return Picture(
        _image_of(name, (root.findtext("filename") or "").strip(), images, known),
        source,
        None if size is None else sides(*((size.findtext(side) or "").strip() for side in ("width", "height"))),
        tuple(_read_object(element) for element in elements),
    )


def _image_of(name: str, written: str, images: Path, known: dict[str, Path]) -> Path:
    """The image of the annotation's own name; the name written inside is often of a different machine.

    It decides between a.jpg and a.png alone, of which one may be a mask of the other.
    """
    stem = name.rpartition("/")[2]
    if found := known.get(name) or known.get(stem):
        twins = [found, *(known[name + ending] for ending in IMAGE_ENDINGS if name + ending in known)]
        meant = [file for file in twins if len(twins) == 1 or file.name == PureWindowsPath(written).name]
        if not meant:
            raise ValueError(f"{' and '.join(file.name for file in twins)} have this name, and the file names neither")
        return meant[0]
    path = path_inside(images, written or f"{stem}.jpg")
    if not os.path.isfile(path):
        raise ValueError(f"there is no image {images.name}/{name}.* and none called {written!r}")
    return path


def _read_object(element: Element) -> Object:
    """VOC counts pixels from 1 and its boxes include their last one, so that 1..1 is one pixel: 0 to 1."""
    box = element.find("bndbox")
    if box is None:
        raise ValueError("an object has no bndbox")
    corners = ("xmin", "ymin", "xmax", "ymax")
    xmin, ymin, xmax, ymax = (number((box.findtext(name) or "").strip(), name) for name in corners)
    if xmax > xmin and ymax > ymin:
        refuse_parts((xmin, ymin, xmax, ymax))
    # A box that ends where it starts is one pixel by that rule, and in practice a slip of the mouse: no area.
    left, top = (low if high <= low else low - 1 for low, high in ((xmin, xmax), (ymin, ymax)))
    name = (element.findtext("name") or "").strip()
    return Object((left, top, xmax, ymax), name, ignored=flag(element.findtext("difficult"), "difficult"))


def _folder(root: Path, names: tuple[str, ...], endings: tuple[str, ...]) -> Path:
    """The first of the folders called `names` that holds files with one of `endings`, or has subfolders that do."""
    folders = [root / name for name in names if (root / name).is_dir()]
    for folder in folders:
        if any(file.suffix.lower() in endings for file in folder.iterdir()):
            return folder
    for folder in folders:
        if folder != root and any(_below(folder, endings)):
            return folder
    wanted = ", ".join(name or "the folder itself" for name in names)
    deeper = next((file.parent for depth in (1, 2, 3) for file in root.glob("*/" * depth + "*.xml")), root)
    within = deeper.parent if deeper.name in ANNOTATION_FOLDERS else deeper
    hint = "" if within == root else f"; is it {within}?"
    if files := [*sorted(root.glob("*.json")), *sorted(root.glob("*/*.json"))]:
        hint += f"; {files[0].name} may be a file of COCO, which is given as coco:{files[0]}"
    raise FileNotFoundError(f"{root} holds no {endings[0]} files, looked for in: {wanted}{hint}")
