"""Says which links of the Markdown files in this repository lead nowhere.

    links.py [FILE...]     all files that git knows, when none is named

Looked at are links and pictures to files of the repository, with their anchors, and names of
Markdown files under docs/ between backticks, but for names in capitals, which stand for any.
Addresses elsewhere are not asked for: a check that needs the network fails for reasons that are
not the page's.
"""
import os
import re
import subprocess
import sys
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(```|~~~)")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")
NAMED = re.compile(r"`(?P<target>docs/[a-z0-9./_-]+\.md)`")
HEADING = re.compile(r"^#{1,6} +(?P<text>.*?)#*\s*$")
ELSEWHERE = re.compile(r"^[a-z][a-z+.-]*:")


def lines_outside_code(text):
    """Numbered lines, without those of code blocks."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield number, line


def anchor(heading):
    """The anchor that hosts of Markdown make of a heading."""
    text = LINK.sub(lambda link: link.group(0)[1:].partition("]")[0], heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    found = set()
    with open(path, encoding="utf-8") as page:
        for _, line in lines_outside_code(page.read()):
            heading = HEADING.match(line)
            if heading:
                base = name = anchor(heading["text"])
                copies = 0
                while name in found:
                    copies += 1
                    name = f"{base}-{copies}"
                found.add(name)
    return found


def targets(text):
    for number, line in lines_outside_code(text):
        for link in LINK.finditer(CODE.sub(lambda code: "x" * len(code.group(0)), line)):
            yield number, link["target"], False
        for named in NAMED.finditer(line):
            yield number, named["target"], True


def wrong_links(path, root="."):
    """What is wrong in one file, as (line, words)."""
    with open(os.path.join(root, path), encoding="utf-8") as page:
        text = page.read()
    for number, target, is_from_root in targets(text):
        if ELSEWHERE.match(target):
            continue
        file, _, fragment = unquote(target).partition("#")
        start = "" if is_from_root else os.path.dirname(path)
        place = os.path.normpath(os.path.join(root, start, file)) if file else os.path.join(root, path)
        if not os.path.exists(place):
            yield number, f"{target} leads to no file"
        elif fragment and place.endswith(".md") and fragment not in anchors(place):
            yield number, f"{target} leads to no heading of that page"


def main():
    paths = sys.argv[1:] or subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True, text=True, check=True).stdout.split()
    paths = [path for path in paths if os.path.exists(path)]
    found = [f"{path}:{number}: {words}" for path in paths for number, words in wrong_links(path)]
    print("\n".join(found + [f"{len(paths)} pages, {len(found)} links lead nowhere"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
