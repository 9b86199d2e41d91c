"""Annotated pictures on one page: classes, sizes, defects, and the detector that would be trained on them."""

from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from frcnn_lite.data.defects import describe_defects, listed
from frcnn_lite.data.pictures import AnnotatedPictures
from frcnn_lite.data.source import DataSource, choose_splits
from frcnn_lite.data.statistics import fit_detector
from frcnn_lite.printable import printable


def summarise(source: DataSource, data: AnnotatedPictures, per_kind: int = 20, unannotated: Sequence[str] = ()) -> str:
    """The page for `data`, read from `source`.

    Args:
        per_kind: how many defects of each kind, and how many pictures without an annotation, are listed by file.
        unannotated: names of pictures without an annotation.
    """
    splits = ", ".join(f"{printable(name)} {len(names)}" for name, names in source.splits().items())
    lines = [printable(str(source)), f"splits: {splits}"]
    if not source.split:
        lines.append(f"training: {printable(_training(source))}")
    lines += [*_classes(data), *_sizes(data)]
    if left_out := len(source.names()) - len(data):
        lines.append(f"pictures that are left out, for defects that are listed below: {left_out}")
    if unannotated:
        lines.append(f"pictures without an annotation, which no training sees: {len(unannotated)}")
        lines += listed(list(map(printable, unannotated)), per_kind)
    if data.turned:
        lines.append(f"pictures of a camera that was turned (EXIF): {data.turned}")
    lines += [f"doubt: {printable(hint)}" for hint in data.hints]
    lines.append(f"defects: {len(data.defects)}")
    return "\n".join([*lines, describe_defects(data.defects, per_kind)]).rstrip()


def _training(source: DataSource) -> str:
    try:
        train, test = choose_splits(str(source))
    except ValueError as error:
        return str(error)
    return f"train takes {train.split}, evaluate takes {test.split}"


def _classes(data: AnnotatedPictures) -> Iterator[str]:
    names = {name: printable(name) for name in data.class_names}
    objects = Counter(names[thing.name] for picture in data.pictures for thing in picture.objects)
    where = Counter(names[name] for picture in data.pictures for name in {t.name for t in picture.objects})
    ignored = sum(thing.ignored for picture in data.pictures for thing in picture.objects)
    yield f"{len(data)} pictures, {objects.total()} objects, {ignored} of them difficult or crowds"
    objects.update(dict.fromkeys(names.values(), 0))  # a class without objects is trained, too
    width = max(map(len, objects), default=0)
    for name, count in objects.most_common():
        yield f"  {name:<{width}} {count:>7} in {where[name]} pictures"


def _sizes(data: AnnotatedPictures) -> Iterator[str]:
    if not data.pictures:
        yield "not one picture can be used: the defects below say why"
        return
    shapes = Counter(picture.size for picture in data.pictures if picture.size is not None)
    common = ", ".join(f"{width} x {height} ({count})" for (width, height), count in shapes.most_common(3))
    yield f"sizes of pictures: {common}" + (f" and {len(shapes) - 3} more" if len(shapes) > 3 else "")
    picture_sizes, boxes, owner = data.boxes()
    if len(boxes) == 0:
        return
    sides = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1).sqrt().quantile(torch.tensor([0.05, 0.5, 0.95])).tolist()
    yield "sizes of boxes, square root of the area: 5 % {:.0f}, half {:.0f}, 95 % {:.0f} pixels".format(*sides)
    (height, width), anchors = fit_detector(picture_sizes, boxes, owner)
    sizes, ratios = (" ".join(f"{number:g}" for number in numbers) for numbers in anchors[:2])
    yield f"a detector: pictures brought to {width} x {height}, anchors of {sizes} pixels, height / width {ratios}"
    yield f"  {anchors.matched:.1%} of the boxes overlap one by half"
