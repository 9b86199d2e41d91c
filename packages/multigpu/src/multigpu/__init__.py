"""Find what goes wrong on several GPUs: `lint` in code, `explain` from an error text, `doctor` on a machine.

The package imports the standard library alone, because its user may be somebody whose torch does not work.
"""

__version__ = "0.1.0"
