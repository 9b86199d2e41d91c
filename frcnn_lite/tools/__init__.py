"""Commands around the package: what helps a reader, and what keeps the notebooks honest."""
