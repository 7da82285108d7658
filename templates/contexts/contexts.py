"""The context bridge: keeps interpreters with their state and serves them on a unix socket."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge.main import main  # noqa: E402

if __name__ == "__main__":
    main()
