"""Says where a page uses a word that docs/glossary.md rules out, and which word is wanted there.

    words.py [--help-texts DIR]... [FILE...]

Without files it reads every page: the Markdown files of the root, of docs (without docs/reference),
of the SDKs, of tests, of examples and of skills, and the comments of Rust examples. Code, Markdown
comments and addresses of links are not words of ours and are left out; comments in the examples of a
page are read. A fenced block without a language is output: the pages of docs/evidence quote what tests
and benches printed, and a record of a run is not edited. Below a directory of help texts (`dayflyd manual`,
docs/reference, packaging) every file is read whole, fenced blocks included, because a reference
quotes the help in them.

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
PAGES = [
    "*.md", "docs/**/*.md", "sdk/*/README.md", "tests/**/*.md", "examples/*.md", "skills/**/*.md",
    "crates/*/examples/*.rs",
]
WITH_HELP_TEXTS = "docs/reference/"
FENCED = re.compile(r"^ {0,3}(```|~~~)(\w*).*?^ {0,3}\1[^\n]*$", re.S | re.M)
# How a comment begins in the languages that examples are written in.
HASH, SLASHES = re.compile(r"(?:^|(?<=\s))#(?=\s)(.*)$", re.M), re.compile(r"(?:^|(?<=\s))//[/!]?(?=\s)(.*)$", re.M)
COMMENTS = {"sh": HASH, "python": HASH, "toml": HASH, "yaml": HASH, "ts": SLASHES, "rs": SLASHES}
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


def only_comments(code, language):
    """Code of which the text of its comments is left. A comment may go on over several lines."""
    shown = re.sub(r"[^\n]", HIDDEN, code)
    previous = 0
    for match in COMMENTS[language].finditer(code) if language in COMMENTS else []:
        # Between two lines of one comment there is nothing but room.
        is_continued = previous and not code[previous:match.start()].strip()
        begin = previous if is_continued else match.start()
        room = re.sub(r"[^\n]", " ", code[begin:match.start(1)])
        shown = shown[:begin] + room + match.group(1) + shown[match.end():]
        previous = match.end()
    return shown


def findings(text, table, has_fences):
    """What is wrong in a text, as (line, words)."""
    if has_fences:
        text = re.sub(r"^( {0,3})(```|~~~)\w*$", lambda fence: HIDDEN * len(fence.group(0)), text, flags=re.M)
    else:
        text = FENCED.sub(lambda fence: only_comments(fence.group(0), fence.group(2)), hide(text, COMMENT))
    shown = hide(text, COMMENT, INLINE, ADDRESS)
    for rule in table:
        free = [match.span() for allowed in rule.allowed for match in allowed.finditer(shown)]
        for match in rule.pattern.finditer(shown):
            if not any(start <= match.start() and match.end() <= end for start, end in free):
                words = " ".join(match.group(0).split())
                yield shown.count("\n", 0, match.start()) + 1, f"{words!r}: write {rule.wanted}"


def every_page():
    found = {path for pattern in PAGES for path in glob.glob(pattern, recursive=True)}
    return sorted(path for path in found if not path.startswith(WITH_HELP_TEXTS) and "node_modules" not in path)


def pages(options):
    for path in options.files or ([] if options.help_texts else every_page()):
        text = read(path)
        if path == GLOSSARY:
            # The table itself has every form that is ruled out.
            text = text.partition(f"\n## {SECTION}\n")[0]
        if path.endswith(".rs"):
            text = only_comments(text, "rs")
        yield path, text, False
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
