"""Prints the version of a framework's package, and how many sandboxes are left after its tests."""

import sys
from importlib.metadata import version

from dayfly import Sandbox

print(version(sys.argv[1]), len(list(Sandbox.list())))
