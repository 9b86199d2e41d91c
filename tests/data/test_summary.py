import json

from annotated_folders import write_annotation, write_coco, write_image, write_voc

from frcnn_lite.cli import main
from frcnn_lite.data import AnnotatedPictures, DataSource, summarise


def test_the_page_of_a_folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (11, 11, 30, 30), True)] for name in "abc"}
    write_voc(tmp_path, {**pictures, "d": [("dog", (60, 5, 60, 5))]}, {"train": list("ab"), "val": list("cd")})
    source = DataSource.parse(str(tmp_path))
    read, defects = source.read()
    data = AnnotatedPictures(read, source.class_names(read), defects=defects)
    page = summarise(source, data)
    for line in (
        "splits: train 2, val 2",
        "training: train takes train, evaluate takes val",
        "3 pictures, 6 objects, 3 of them difficult or crowds",
        "  dog       3 in 3 pictures",
        "sizes of pictures: 64 x 48 (3)",
        "pictures brought to 96 x 64, anchors of 42.7 pixels, height / width 1\n  100.0% of the boxes",
        "pictures that are left out, for defects that are listed below: 1\n",
        "defects: 2\nno_area: 1\n  Annotations/d.xml: dog 60 5 60 5\n  To do: write the corners as finite numbers",
        "emptied: 1\n  Annotations/d.xml: all of its 1 objects were dropped\n",
    ):
        assert line in page
    assert "training:" not in summarise(DataSource.parse(f"{tmp_path}@val"), data)


def test_the_command_says_whether_there_are_defects(tmp_path, capsys):
    write_voc(tmp_path / "sound", {name: [("dog", (9, 9, 40, 40))] for name in "ab"}, {"train": ["a"], "val": ["b"]})
    write_voc(tmp_path / "empty", {"a": []}, {"val": ["a"]})
    assert main(["data", "check", str(tmp_path / "sound")]) == 0
    assert capsys.readouterr().out.endswith("defects: 0\n")
    assert main(["data", "check", f"voc:{tmp_path / 'empty'}"]) == 1
    page = capsys.readouterr().out
    assert "no split of ['val'] can be trainval or train" in page and "empty: 1" in page
    assert main(["data", "check", str(tmp_path / "nowhere")]) == 2


def test_pictures_without_an_annotation_are_named_and_are_no_defect(tmp_path, capsys):
    write_voc(tmp_path / "voc", {name: [("dog", (9, 9, 40, 40))] for name in "abcdefgh"})
    boxes = {f"{name}.jpg": [{"bbox": [8, 8, 32, 32], "category_id": 7}] for name in "abcdefgh"}
    file = write_coco(tmp_path / "coco" / "boxes.json", boxes)
    for data, images in ((tmp_path / "voc", tmp_path / "voc" / "JPEGImages"), (file, file.parent / "images")):
        write_image(images / "alone.jpg")
        write_image(images / "lonely.png")
        assert main(["data", "check", str(data)]) == 0
        page = capsys.readouterr().out
        assert page.endswith("no training sees: 2\n  alone.jpg\n  lonely.png\ndefects: 0\n")


def test_a_picture_that_an_annotation_calls_otherwise_has_one(tmp_path, capsys):
    root = write_voc(tmp_path, {name: [("dog", (9, 9, 40, 40))] for name in "abcdefgh"})
    (root / "JPEGImages" / "a.jpg").rename(root / "JPEGImages" / "photo 1.jpg")
    write_annotation(root, "a", [("dog", (9, 9, 40, 40))], filename="photo 1.jpg")
    assert main(["data", "check", str(root)]) == 0
    assert "without an annotation" not in capsys.readouterr().out


def test_annotations_of_a_picture_that_the_file_does_not_list(tmp_path, capsys):
    box = {"bbox": [8, 8, 32, 32], "category_id": 7}
    file = write_coco(tmp_path / "boxes.json", {f"{name}.jpg": [box] for name in "abcdefgh"})
    content = json.loads(file.read_text())
    content["annotations"] += [{**box, "image_id": 99, "id": 500}, {**box, "image_id": 99, "id": 501}]
    file.write_text(json.dumps(content))
    assert main(["data", "check", str(file)]) == 1
    assert (
        "boxes.json: image_id 99: the file lists no image with this id, and has 2 annotations"
        in capsys.readouterr().out
    )
