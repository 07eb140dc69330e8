"""A workbench for streaming-video memory: what to remember, when to use it, what it costs.

Importing this package loads neither torch nor a notebook package; heavy imports happen where they
are used.
"""

__version__ = "0.1.0"
