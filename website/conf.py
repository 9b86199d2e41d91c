"""Sphinx's settings. `website.build` gathers the sources and calls Sphinx with this folder as its configuration."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from website import api, failures, layout

project = "frcnn_lite"
repo = os.environ.get("FRCNN_LITE_REPO", "")  # owner/name at GitHub, or nothing

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "off"  # the stored outputs are what the tests hold
nb_code_prompt_show = "Answer the question, then open the {type}"
nb_code_prompt_hide = "Close the {type}"
nb_ipywidgets_js = {}  # widgets need a kernel, and their scripts would be asked from a third party
myst_heading_anchors = 5  # the anchors that GitHub makes
default_role = "code"
smartquotes = False  # `--option` in a sentence must stay what a reader can type
autodoc_typehints_format = "short"
napoleon_use_ivar = True  # else a field of a NamedTuple is described twice: in "Attributes", and as a member
add_module_names = False
suppress_warnings = ["myst.header", "myst.strikethrough"]

html_theme = "sphinx_book_theme"
html_title = "frcnn_lite: multi-GPU PyTorch"
html_static_path = ["static"]
templates_path = ["templates"]
html_sidebars = {f"{layout.FAILURES}/*": ["navbar-logo.html", "search-button-field.html", "failures-menu.html"]}
html_css_files = ["site.css"]
html_js_files = ["sliders.js", "ask.js", "below.js"]
html_favicon = "static/icon.svg"
html_context = {
    "default_mode": "auto",  # light or dark, as the reader's system has it
    "edit_page_provider_name": "GitHub",
    "edit_page_url_template": f"https://github.com/{repo}/edit/main/{{{{ repository_file_name }}}}",
}
html_copy_source = False  # the prepared ones would only confuse; the files themselves are at GitHub
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_use_index = html_domain_indices = False  # the search finds more
html_show_copyright = html_show_sphinx = False
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
    "footer_content_items": [],
    "show_navbar_depth": 1,
    "collapse_navbar": True,  # the failures of a chapter are listed beside its pages only
    "navigation_with_keys": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    **(
        {
            "repository_url": f"https://github.com/{repo}",
            "repository_branch": "main",
            "use_repository_button": True,
            "use_source_button": True,
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        }
        if repo
        else {}
    ),
}


def file_of_page(app, page, template, context, tree) -> None:
    """Name the file that a page is made of: the theme's own guess is a file of the page's name."""
    if tree:
        context["repository_file_name"] = layout.file_of(page)


def menu_of_the_catalogue(app, page, template, context, tree) -> None:
    """What the menu beside a page of the catalogue lists; see templates/failures-menu.html."""
    if page.startswith(f"{layout.FAILURES}/"):
        context |= failures.menu(page)


def twin(app, page, template, context, tree) -> None:
    """Name the page's twin in Markdown, which website.build writes beside it."""
    name = page.rpartition("/")[2]
    if tree and name != "index" and not name.startswith("chapter-") and not page.startswith(f"{layout.API}/"):
        context["metatags"] += f'\n<link rel="alternate" type="text/markdown" href="{name}.md" />'


def search_of_the_catalogue(app, page, template, context, tree) -> None:
    """The page of the search answers from the catalogue, too; no other page needs the scripts for it."""
    if page == "search":
        app.add_js_file("catalogue.js")  # website.build writes it
        app.add_js_file("explain.js")


def setup(app) -> None:
    """Sphinx calls it. Autodoc shows the programs in our docstrings as programs."""
    app.connect("autodoc-process-docstring", api.with_code, priority=400)  # before napoleon reads the sections
    app.connect("html-page-context", file_of_page, priority=100)  # before the theme makes its buttons
    app.connect("html-page-context", menu_of_the_catalogue)
    app.connect("html-page-context", twin)
    app.connect("html-page-context", search_of_the_catalogue)
