"""Penn-Fudan's annotations, PASCAL's text format of 2005, as files of VOC."""

import re
from pathlib import Path
from xml.sax.saxutils import escape

SIZE = re.compile(r"Image size \(X x Y x C\) : (\d+) x (\d+)")
BOX = re.compile(
    r'Bounding box for object \d+ "[^"]*" \(Xmin, Ymin\) - \(Xmax, Ymax\) : \((\d+), (\d+)\) - \((\d+), (\d+)\)'
)
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def write_voc_annotations(folder: Path) -> int:
    """Write Annotations/NAME.xml for every Annotation/NAME.txt of PennFudanPed below `folder`; how many there are.

    Both formats count pixels from 1 and include the last. Raises ValueError for a text without size or box.
    """
    root = folder / "PennFudanPed"
    (root / "Annotations").mkdir()
    texts = sorted((root / "Annotation").glob("*.txt"))
    for text in texts:
        (root / "Annotations" / f"{text.stem}.xml").write_text(_to_voc(text), encoding="utf-8")
    return len(texts)


def _to_voc(file: Path) -> str:
    text = file.read_text(encoding="latin-1")
    size, boxes = SIZE.search(text), BOX.findall(text)
    if size is None or not boxes:
        raise ValueError(f"{file.name} is not an annotation of Penn-Fudan: it names no image size or no box")
    objects = (
        "".join(f"<{corner}>{number}</{corner}>" for corner, number in zip(CORNERS, box, strict=True)) for box in boxes
    )
    return (
        f"<annotation><filename>{escape(file.stem)}.png</filename>"
        f"<size><width>{size[1]}</width><height>{size[2]}</height><depth>3</depth></size>"
        + "".join(f"<object><name>person</name><bndbox>{corners}</bndbox></object>" for corners in objects)
        + "</annotation>\n"
    )
