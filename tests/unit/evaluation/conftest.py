"""Decoders without a model are at home in the tests of the engine."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
