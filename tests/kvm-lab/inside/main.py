#!/usr/bin/env python3
"""What a lab machine runs: a host with KVM is made, `base` baked, and then what the plan names."""
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "inside"))

import bake  # noqa: E402
import doctor  # noqa: E402
import prepare  # noqa: E402
from report import tell  # noqa: E402


def run(plan: dict[str, Any]) -> bool:
    tell("host", **prepare.make_host(list(plan.get("kvm_options", []))))
    os.environ["DAYFLYD_PROBE_SECONDS"] = str(plan["probe_seconds"])
    os.environ["DAYFLYD_IMAGE_CACHE"] = "/lab/images"
    hunted = plan.get("hunt", {})
    if hunted and not hunted["product"]:
        import hunt
        return hunt.run_bare(hunted)
    bake.bake()
    passed = True
    if "cases" in plan:
        import cases
        passed = cases.run(plan["cases"]) and passed
    if "hunt" in plan:
        import hunt
        passed = hunt.run(plan["hunt"]) and passed
    # The last: it also says whether anything of the runs before is left.
    return doctor.check() and passed


def main() -> int:
    try:
        return 0 if run(json.loads(Path("/lab/plan.json").read_text())) else 1
    except Exception as error:  # Whatever it was, the one who booted this must hear of it.
        traceback.print_exc()
        tell("failed", error=f"{type(error).__name__}: {error}")
        return 125


if __name__ == "__main__":
    sys.exit(main())
