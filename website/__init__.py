"""The site: the notebooks, the catalogue, the pages and the API as static HTML, from the files that the repository has.

    python -m website.build --out DIR [--repo owner/name]     # what `make site` calls

It is not installed and nothing imports it but its tests.
"""
