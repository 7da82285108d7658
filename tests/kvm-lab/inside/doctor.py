"""`dayflyd doctor` on the host with KVM: fit, on hardware, and nothing left over."""
import json
import subprocess

from bake import TEMPLATES
from product import PROGRAMS
from report import tell

DOCTOR_SECONDS_MAX = 600


def check() -> bool:
    told = subprocess.run([PROGRAMS / "dayflyd", "doctor", "--data-dir", TEMPLATES, "--json"], check=False,
                          capture_output=True, text=True, timeout=DOCTOR_SECONDS_MAX)
    report = json.loads(told.stdout)
    wrong = [check for check in report["checks"] if check["verdict"] == "failed"]
    clean = (report["fit"] and report["accelerator"] == "kvm" and report["isolation"] == "hardware"
             and not report["leftovers"] and told.returncode == 0)
    tell("doctor", clean=clean, status=told.returncode, accelerator=report["accelerator"],
         isolation=report["isolation"], leftovers=len(report["leftovers"]), failed=wrong)
    return clean
