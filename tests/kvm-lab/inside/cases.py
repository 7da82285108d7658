"""Runs tests of the e2e program by name, each in a process of its own and within a deadline."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from report import RESULTS, tell, telling
from witness import Witness

PROGRAM = "/lab/machines"
WORK = Path("/lab/work")
TAIL_CHARACTERS = 1500


def environment(patience: int) -> dict[str, str]:
    return {**os.environ, "DAYFLY_E2E_PROGRAMS": "/lab/programs", "DAYFLY_E2E_TEMPLATES": str(WORK / "data"),
            "DAYFLY_E2E_PATIENCE": str(patience), "DAYFLY_REQUIRE_VM": "1", "TMPDIR": str(WORK),
            "RUST_BACKTRACE": "0"}


def run(plan: dict) -> bool:
    passed = [run_case(name, plan) for name in plan["names"]]
    tell("cases", run=len(passed), passed=sum(passed))
    return all(passed)


def run_case(name: str, plan: dict) -> bool:
    """One test. What its daemons and engines said is kept when it fails."""
    start = time.monotonic()
    log = RESULTS / f"{name.replace('::', '.')}.log"
    with Witness(WORK) as witness, open(log, "wb") as output:
        with telling("running", lambda: name):
            status = execute(name, plan, output)
        passed = status == 0 and b"\ntest result: ok. 1 passed" in log.read_bytes()
        if not passed:
            witness.keep(RESULTS / log.stem)
    told = log.read_text(errors="replace")
    tell("case", name=name, passed=passed, seconds=round(time.monotonic() - start, 1),
         said=figures(told) if passed else told[-TAIL_CHARACTERS:])
    clean()
    return passed


def execute(name: str, plan: dict, output) -> int | str:
    words = [PROGRAM, "--exact", name, "--include-ignored", "--nocapture", "--test-threads", "1"]
    child = subprocess.Popen(words, env=environment(plan["patience"]), stdin=subprocess.DEVNULL, stdout=output,
                             stderr=subprocess.STDOUT, start_new_session=True, cwd=WORK)
    try:
        return child.wait(plan["case_seconds"])
    except subprocess.TimeoutExpired:
        # As a person would: the test ends its daemon on the way out only if it may.
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        output.write(f"\nended after {plan['case_seconds']} s\n".encode())
        return "timeout"


def figures(text: str) -> str:
    """What a test printed, without the words of its harness."""
    lines = [line for line in text.splitlines()
             if line.strip() and not line.startswith(("running ", "test ", "successes:"))]
    return "\n".join(lines)[:TAIL_CHARACTERS]


def clean() -> None:
    """What a test that was ended left behind must not weigh on the next one."""
    for left in WORK.glob("e2e-*"):
        programs = Path("/lab/programs")
        subprocess.run([programs / "dayflyd", "stop", "--all", "--data-dir", left], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        for process in Path("/proc").glob("[0-9]*"):
            end_if_of(process, str(left))
        shutil.rmtree(left, ignore_errors=True)


def end_if_of(process: Path, directory: str) -> None:
    try:
        if directory.encode() in (process / "cmdline").read_bytes():
            os.kill(int(process.name), signal.SIGKILL)
    except OSError:
        # It has ended by itself.
        return
