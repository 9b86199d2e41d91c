"""What goes wrong on several GPUs: found in code (lint), told from its error text (explain), looked for here (doctor).

Standard library only: who needs it may be somebody whose torch does not work.
"""

__version__ = "0.1.0"
