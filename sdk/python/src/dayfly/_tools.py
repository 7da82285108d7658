"""What programs hand to methods that run something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Is told of output.
OnOutput = Callable[[str], Any]
