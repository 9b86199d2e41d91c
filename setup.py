"""What pyproject.toml cannot say: editable installs bring the data-files along, too; setuptools asks for `has_data`."""

from setuptools import Distribution, setup


class _Distribution(Distribution):
    has_data = Distribution.has_data_files


setup(distclass=_Distribution)
