"""Says where a page uses a word that docs/glossary.md rules out, and which word is wanted there.

    words.py [--help-texts DIR]... [FILE...]

Without files it reads README.md and docs/*.md. Code, comments and addresses of links are not words
of ours and are left out. Below a directory of help texts (`dayflyd manual`, docs/reference) every
file is read, fenced blocks included, because a reference quotes the help in them.

The table is the one under "Words that we do not use": what is ruled out, what is wanted, and
phrases that are allowed all the same. `*` stands for any ending of a word. That the glossary has
one meaning for each word is looked at as well.
"""
import argparse
import glob
import os
import re
import sys

GLOSSARY = "docs/glossary.md"
SECTION = "Words that we do not use"
HIDDEN = "\0"
FENCED = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.S | re.M)
# Of one mark, or of two as in the docstrings of Python.
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(?:(?!\1)[^\n])*(?:\n(?:(?!\1)[^\n])+)?\1")
COMMENT = re.compile(r"<!--.*?-->", re.S)
ADDRESS = re.compile(r"(?<=\])\([^()\s]*(?:\s+\"[^\"]*\")?\)|https?://\S+")


class Rule:
    """A form that is ruled out."""

    def __init__(self, form, wanted, allowed):
        self.form, self.wanted = form, wanted
        self.pattern = pattern(form)
        self.allowed = [pattern(words) for words in allowed]


def pattern(form):
    words = [re.escape(word).replace(r"\*", r"\w*") for word in form.split()]
    return re.compile(r"(?<![\w-])" + r"\s+".join(words) + r"(?!\w)", re.I)


def rows(text):
    """Cells of every table row, without heads and rules."""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        is_head = re.match(r"^\|[\s|:-]+\|$", following)
        if line.startswith("|") and not is_head and not re.match(r"^\|[\s|:-]+\|$", line):
            yield index + 1, [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def rules(glossary):
    """The table of forms that are ruled out. A glossary without one is an error, not a pass."""
    _, found, section = glossary.partition(f"\n## {SECTION}\n")
    section = section.partition("\n## ")[0]
    table = []
    for _, cells in rows(section):
        form, wanted, allowed = (cells + ["", ""])[:3]
        forms, phrases = quoted(form), quoted(allowed)
        table += [Rule(part, wanted, phrases) for part in forms]
    if not found or not table:
        sys.exit(f"{GLOSSARY} has no table under \"{SECTION}\"")
    return table


def doubled(glossary):
    """Words with two meanings."""
    seen = {}
    for number, cells in rows(glossary.partition(f"\n## {SECTION}\n")[0]):
        if cells[0] in seen:
            yield number, f"{cells[0]!r} has a meaning in line {seen[cells[0]]} already"
        seen.setdefault(cells[0], number)


def hide(text, *kinds):
    for kind in kinds:
        text = kind.sub(lambda part: re.sub(r"[^\n]", HIDDEN, part.group(0)), text)
    return text


def findings(text, table, has_fences):
    """What is wrong in a text, as (line, words)."""
    kinds = [COMMENT, INLINE, ADDRESS] if has_fences else [COMMENT, FENCED, INLINE, ADDRESS]
    if has_fences:
        text = re.sub(r"^( {0,3})(```|~~~)\w*$", lambda fence: HIDDEN * len(fence.group(0)), text, flags=re.M)
    shown = hide(text, *kinds)
    for rule in table:
        free = [match.span() for allowed in rule.allowed for match in allowed.finditer(shown)]
        for match in rule.pattern.finditer(shown):
            if not any(start <= match.start() and match.end() <= end for start, end in free):
                words = " ".join(match.group(0).split())
                yield shown.count("\n", 0, match.start()) + 1, f"{words!r}: write {rule.wanted}"


def pages(options):
    paths = options.files or (["README.md"] + sorted(glob.glob("docs/*.md")) if not options.help_texts else [])
    for path in paths:
        text = read(path)
        # The table itself has every form that is ruled out.
        yield path, text.partition(f"\n## {SECTION}\n")[0] if path == GLOSSARY else text, False
    for directory in options.help_texts:
        found = sorted(path for path in glob.glob(f"{directory}/**/*", recursive=True) if os.path.isfile(path))
        if not found:
            sys.exit(f"{directory} has no help texts")
        for path in found:
            yield path, read(path), True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--help-texts", action="append", default=[], metavar="DIR")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    glossary = read(GLOSSARY)
    table = rules(glossary)
    wrong = [f"{GLOSSARY}:{number}: {words}" for number, words in doubled(glossary)]
    count = 0
    for path, text, has_fences in pages(options):
        count += 1
        wrong += [f"{path}:{number}: {words}" for number, words in sorted(findings(text, table, has_fences))]
    print("\n".join(wrong + [f"{count} pages, {len(table)} forms ruled out, {len(wrong)} findings"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
