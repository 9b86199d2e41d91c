"""Take out of the finished pages what a first visit need not load, and say how much a first visit loads.

The theme puts 540 KB of icons as a script on every page, although a font of 115 KB has the few that are shown, and the
index of the search, 210 KB, which only the page of the search reads.
"""

import gzip
import re
from pathlib import Path

ICONS = re.compile(r'\s*<script [^>]*src="[^"]*_static/scripts/fontawesome\.js[^"]*"></script>')
INDEX = re.compile(r'\s*<script src="[^"]*(?:_static/(?:searchtools|language_data)|searchindex)\.js"></script>')
VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
LOADED = re.compile(r'(?:src|href)="([^"?#]+\.(?:js|css))[^"]*"')
FONT = "_static/vendor/fontawesome/webfonts/fa-solid-900.woff2"


def lighten(out: Path) -> None:
    """Take these out of every page of the site in the folder `out`."""
    for file in out.rglob("*.html"):
        file.write_text(
            lightened(file.read_text(encoding="utf-8"), is_search=file.name == "search.html"), encoding="utf-8"
        )
    (out / "_static" / "scripts" / "fontawesome.js").unlink(missing_ok=True)


def lightened(page: str, is_search: bool) -> str:
    """A page without the script of icons, with the search's scripts only where they are read, and with one viewport."""
    page = ICONS.sub("", page)
    if not is_search:
        page = INDEX.sub("", page)
    seen = VIEWPORT.findall(page)
    return VIEWPORT.sub("", page, count=len(seen) - 1) if len(seen) > 1 else page


def first_visit(out: Path, page: str = "index.html") -> int:
    """The bytes that a browser gets, packed as servers do, before it shows a page for the first time."""
    folder = (out / page).parent
    html = (out / page).read_text(encoding="utf-8")
    files = {(folder / name).resolve() for name in LOADED.findall(html)}
    packed = sum(len(gzip.compress(file.read_bytes())) for file in [out / page, *files] if file.exists())
    return packed + (out / FONT).stat().st_size  # a font is packed already
