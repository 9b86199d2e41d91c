"""Downloads from a server on this machine, which can do what servers do wrong; and archives of strangers."""

import hashlib
import io
import stat
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from course.tools.fetch import DATASETS, fetch
from course.tools.fetch.catalogue import Archive, Dataset
from course.tools.fetch.command import main
from course.tools.fetch.download import download
from course.tools.fetch.penn_fudan import write_voc_annotations
from course.tools.fetch.unpack import unpack
from frcnn_lite.data import DataSource

CONTENT = bytes(range(256)) * 2000
DIGEST = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Files(BaseHTTPRequestHandler):
    """Serves `server.content`; after `server.drop_after` bytes the connection ends."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content[: self.server.drop_after])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    server.content, server.drop_after, server.requests = CONTENT, None, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def get(server, path, *names, max_bytes=None):
    download([f"{server.url}/{name}" for name in names or ("file",)], path, DIGEST, max_bytes or len(CONTENT))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.zip"


def beside(path):
    """Names of the files in the folder of `path`."""
    return [file.name for file in path.parent.iterdir()]


def test_a_file_arrives_and_is_not_fetched_twice(server, path):
    get(server, path)
    assert path.read_bytes() == CONTENT and beside(path) == [path.name]
    get(server, path)
    assert len(server.requests) == 1


def test_a_file_that_is_not_what_it_should_be_is_fetched_again(server, path):
    path.write_bytes(CONTENT[:1000])
    get(server, path)
    assert path.read_bytes() == CONTENT


def test_a_dropped_connection_leaves_nothing_and_the_next_call_works(server, path):
    server.drop_after = 200_000
    with pytest.raises(ConnectionError, match=r"could not be fetched.*\n.*ended after 200,000 of 512,000 bytes"):
        get(server, path)
    assert beside(path) == []
    server.drop_after = None
    get(server, path)
    assert path.read_bytes() == CONTENT and beside(path) == [path.name]


def test_an_interrupted_program_leaves_nothing_and_the_next_one_works(server, path, monkeypatch):
    def interrupted(self, count):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tqdm.tqdm.update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            get(server, path)
    assert beside(path) == []
    get(server, path)
    assert path.read_bytes() == CONTENT


def test_what_a_killed_program_left_is_not_in_the_way(server, path):
    path.with_name(path.name + ".partial").write_bytes(CONTENT[::-1] + CONTENT)
    get(server, path)
    assert path.read_bytes() == CONTENT and beside(path) == [path.name]


def test_a_wrong_checksum_leaves_nothing(server, path):
    server.content = CONTENT[::-1]
    with pytest.raises(ValueError, match=rf"arrived with the checksum sha256:\w+, not {DIGEST}; it was not kept"):
        get(server, path)
    assert beside(path) == []


def test_an_answer_without_end_is_cut_off(server, path):
    with pytest.raises(ValueError, match="longer than 1,000 bytes"):
        get(server, path, max_bytes=1000)
    assert beside(path) == []


def test_the_next_address_is_tried(server, path):
    get(server, path, "missing", "file")
    assert server.requests == ["/missing", "/file"] and path.read_bytes() == CONTENT
    path.unlink()
    with pytest.raises(ConnectionError, match="404"):
        get(server, path, "missing")
    with pytest.raises(ConnectionError, match="refused"):
        download(["http://127.0.0.1:1/file"], path, DIGEST, 10)


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for member, content in members:
            pack.writestr(member, content)
    return path


def tar_of(path, *entries, mode="w:gz"):
    with tarfile.open(path, mode) as pack:
        for name, content, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, "/etc/passwd", len(content)
            pack.addfile(entry, io.BytesIO(content))
    return path


def test_both_kinds_of_archives_unpack(tmp_path):
    (tmp_path / "out").mkdir()
    unpack(zip_of(tmp_path / "a.zip", ("x/", ""), ("x/a.txt", "one")), tmp_path / "out", 10)
    entries = (("./", b"", tarfile.DIRTYPE), ("./x", b"", tarfile.DIRTYPE), ("./x/b.txt", b"two", tarfile.REGTYPE))
    unpack(tar_of(tmp_path / "b.tgz", *entries), tmp_path / "out", 10)
    assert sorted((file.name, file.read_text()) for file in (tmp_path / "out/x").iterdir()) == [
        ("a.txt", "one"),
        ("b.txt", "two"),
    ]


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "x/../../out.txt", "C:/out.txt", "..\\out.txt"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_no_member_leaves_the_folder(tmp_path, name, kind):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    if kind == "zip":
        archive = zip_of(tmp_path / "bad.zip", (name, "evil"))
    else:
        archive = tar_of(tmp_path / "bad.tar", (name, b"evil", tarfile.REGTYPE), mode="w")
    with pytest.raises(ValueError, match="leads out of the folder"):
        unpack(archive, inside, 100)
    assert not list(tmp_path.rglob("out.txt"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    archive = tar_of(tmp_path / "bad.tar", ("x", b"", kind), mode="w")
    with pytest.raises(ValueError, match=r"'x' is a (link|device); only files and folders"):
        unpack(archive, tmp_path / "out", 100)


def test_links_in_a_zip_are_refused(tmp_path):
    info = zipfile.ZipInfo("x")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(ValueError, match="'x' is a link"):
        unpack(zip_of(tmp_path / "bad.zip", (info, "/etc/passwd")), tmp_path / "out", 100)


@pytest.mark.parametrize("ending", ["zip", "tar"])
def test_a_bomb_stops_where_it_was_to_stop(tmp_path, ending):
    zeros = bytes(30_000_000)
    if ending == "zip":
        archive = zip_of(tmp_path / "bomb.zip", ("zeros", zeros))
    else:
        archive = tar_of(tmp_path / "bomb.tgz", ("zeros", zeros, tarfile.REGTYPE))
    assert archive.stat().st_size < 100_000
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="unpacks to more than it should, at 'zeros'"):
        unpack(archive, tmp_path / "out", 3_000_000)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("ending", ["zip", "tar"])
def test_many_files_that_are_too_much_together_stop_at_the_first_beyond(tmp_path, ending):
    names = ("a", "b", "c")
    if ending == "zip":
        archive = zip_of(tmp_path / "many.zip", *((name, "x" * 40) for name in names))
    else:
        archive = tar_of(tmp_path / "many.tgz", *((name, b"x" * 40, tarfile.REGTYPE) for name in names))
    with pytest.raises(ValueError, match="unpacks to more than it should, at 'c'"):
        unpack(archive, tmp_path / "out", 100)
    assert not (tmp_path / "out" / "c").exists()


def test_a_zip_that_lies_about_a_size_unpacks_to_no_more(tmp_path):
    archive = zip_of(tmp_path / "lie.zip", ("zeros", bytes(1_000_000)))
    size, lie = ((number).to_bytes(4, "little") for number in (1_000_000, 10))
    content = archive.read_bytes()
    assert content.count(size) == 2  # beside the file, and in the list at the end
    archive.write_bytes(content.replace(size, lie))
    with pytest.raises(ValueError, match=r"lie.zip is not an archive, or a damaged one: .*CRC"):
        unpack(archive, tmp_path / "out", 100)
    assert (tmp_path / "out" / "zeros").stat().st_size <= 10


def test_a_sparse_file_whose_parts_are_longer_than_itself_is_refused(tmp_path):
    """tarfile writes the parts that a sparse file names, whatever size it names for the whole."""
    entry = tarfile.TarInfo("sparse")
    entry.type, entry.size = tarfile.GNUTYPE_SPARSE, 1_000_000
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" + b"00003641100\0"  # one part: from 0, of 1,000,000 bytes
    header[483:495] = b"00000000012\0"  # and ten bytes in all
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    archive = tmp_path / "sparse.tar"
    archive.write_bytes(bytes(header) + bytes(1_000_448) + bytes(1024))
    with tarfile.open(archive) as pack:
        assert [(member.size, member.sparse[0]) for member in pack] == [(10, (0, 1_000_000))]
    with pytest.raises(ValueError, match="'sparse' is a sparse file; only files and folders"):
        unpack(archive, tmp_path / "out", 100)
    assert not (tmp_path / "out" / "sparse").exists()


@pytest.mark.parametrize("ending", ["zip", "tgz"])
def test_a_damaged_archive_is_named(tmp_path, ending):
    make = {"zip": lambda p: zip_of(p, ("a", "text" * 999)), "tgz": lambda p: tar_of(p, ("a", b"text" * 999, b"0"))}
    archive = make[ending](tmp_path / f"cut.{ending}")
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(ValueError, match=f"cut.{ending} is not an archive, or a damaged one"):
        unpack(archive, tmp_path / "out", 10_000)


def dataset_of(server, content, **changes):
    server.content = content
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    archive = Archive("test.zip", (f"{server.url}/file",), digest, len(content))
    return replace(Dataset("test", "v1/x", "", (archive,), max_unpacked_bytes=99), **changes)


def test_a_data_set_is_there_whole_or_not_at_all(server, tmp_path, monkeypatch, capsys):
    content = zip_of(tmp_path / "source.zip", ("v1/x/a.txt", "one"), ("v1/LICENSE", "MIT")).read_bytes()
    into = tmp_path / "data"
    with pytest.raises(ValueError, match="unpacks to more"):
        fetch(dataset_of(server, content, max_unpacked_bytes=1), into)
    assert [file.name for file in into.iterdir()] == ["test.zip"]  # what is checked need not come twice

    def fail(folder):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fetch(dataset_of(server, content, prepare=fail), into)
    assert [file.name for file in into.iterdir()] == ["test.zip"] and len(server.requests) == 1
    monkeypatch.setitem(DATASETS, "Test", dataset_of(server, content))
    assert main(["Test", "--into", str(into)]) == 0
    assert f"--data voc:{into.as_posix()}/test " in capsys.readouterr().out
    assert [file.name for file in into.iterdir()] == ["test"] and (into / "test/a.txt").read_text() == "one"
    assert (into / "test/LICENSE").read_text() == "MIT"
    assert main(["Test", "--into", str(into)]) == 0 and len(server.requests) == 1


def test_the_command_lists_what_there_is_and_says_what_went_wrong(server, tmp_path, monkeypatch, capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(DATASETS)
    with pytest.raises(SystemExit, match="2"):
        main(["Nothing"])
    assert "invalid choice: 'Nothing'" in capsys.readouterr().err
    monkeypatch.setitem(DATASETS, "Test", dataset_of(server, b"text"))
    assert main(["Test", "--into", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "error: test.zip is not an archive" in said.err and said.out == ""


def test_the_catalogue_is_complete():
    lengths = {"sha256": 64, "md5": 32}
    for name, dataset in DATASETS.items():
        assert dataset.about and dataset.max_unpacked_bytes > sum(a.max_bytes for a in dataset.archives), name
        for archive in dataset.archives:
            algorithm, _, digest = archive.digest.partition(":")
            assert len(digest) == lengths[algorithm] and int(digest, 16)
            assert all(url.startswith("http") and url.endswith((".zip", ".tar")) for url in archive.urls)


def test_penn_fudan_becomes_voc(tmp_path):
    from PIL import Image

    root = tmp_path / "PennFudanPed"
    for folder in ("Annotation", "PNGImages"):
        (root / folder).mkdir(parents=True)
    Image.new("RGB", (403, 341)).save(root / "PNGImages" / "PennPed00085.png")
    (root / "Annotation" / "PennPed00085.txt").write_text(
        "# Compatible with PASCAL Annotation Version 1.00\n"
        'Image filename : "PennFudanPed/PNGImages/PennPed00085.png"\nImage size (X x Y x C) : 403 x 341 x 3\n'
        'Bounding box for object 1 "PASpersonWalking" (Xmin, Ymin) - (Xmax, Ymax) : (89, 27) - (200, 302)\n'
    )
    assert write_voc_annotations(tmp_path) == 1
    (picture,), defects = DataSource.parse(f"voc:{root}@all").read()
    assert picture.size == (403, 341) and picture.file.name == "PennPed00085.png" and defects == []
    assert picture.objects[0].box == (88, 26, 200, 302) and picture.objects[0].name == "person"
    (root / "Annotation" / "PennPed00085.txt").write_text("nothing")
    (root / "Annotations" / "PennPed00085.xml").unlink()
    (root / "Annotations").rmdir()
    with pytest.raises(ValueError, match=r"PennPed00085\.txt is not an annotation of Penn-Fudan"):
        write_voc_annotations(tmp_path)
