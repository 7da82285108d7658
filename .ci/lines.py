"""Counts the lines of the walk in docs/walk.md and of the same programs for E2B, and checks the table there.

    lines.py [--compile]

Empty lines, comments and docstrings do not count. With --compile the programs for E2B are also held to
the published packages, which are installed for it.
"""
import re
import subprocess
import sys
import tempfile

PAGE = "docs/walk.md"
PYTHON_PACKAGE = ("e2b-code-interpreter", "2.11.5")
TYPESCRIPT_PACKAGE = ("@e2b/code-interpreter", "2.8.0")
BLOCK = re.compile(r"^```(python|ts|sh)\n(.*?)^```$", re.S | re.M)
DOCSTRING = re.compile(r'^""".*?"""\n', re.S)
COMMENTS = ("#", "//")


def count(program):
    lines = (line.strip() for line in DOCSTRING.sub("", program).splitlines())
    return sum(1 for line in lines if line and not line.startswith(COMMENTS))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wanted(page):
    """The rows that the table must have."""
    ours = {language: count(code) for language, code in BLOCK.findall(page)}
    theirs = [count(read(f"tests/walk/{name}")) for name in ("e2b_walk.py", "e2b-walk.mts")]
    packages = ", ".join(f"`{name}` {version}" for name, version in (PYTHON_PACKAGE, TYPESCRIPT_PACKAGE))
    return [
        f"| Dayfly | {ours['python']} | {ours['ts']} | {ours['sh']} |",
        f"| E2B ({packages}) | {theirs[0]} | {theirs[1]} | not compared |",
    ]


def compile_others():
    with tempfile.TemporaryDirectory() as place:
        python = f"{place}/venv/bin/python"
        for command in (
            [sys.executable, "-m", "venv", f"{place}/venv"],
            [python, "-m", "pip", "install", "--quiet", "==".join(PYTHON_PACKAGE), "pyright==1.1.414"],
            [f"{place}/venv/bin/pyright", "--pythonpath", python, "tests/walk/e2b_walk.py"],
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "@".join(TYPESCRIPT_PACKAGE),
             "typescript@5.9.3", "@types/node@20.19.0"],
            ["cp", "tests/walk/e2b-walk.mts", place],
        ):
            subprocess.run(command, check=True)
        language = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]
        subprocess.run(["npx", "tsc", *language, "e2b-walk.mts"], cwd=place, check=True)


def main():
    page = read(PAGE)
    missing = [row for row in wanted(page) if row not in page.splitlines()]
    for row in missing:
        print(f"{PAGE}: the table lacks {row}")
    if "--compile" in sys.argv[1:]:
        compile_others()
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
