"""Loaded by every Python that a test starts, and by nothing else: no other path has this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
try:
    from system_words import guard
finally:
    del sys.path[0]

guard.install_in_child()
