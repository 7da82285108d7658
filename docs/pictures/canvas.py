"""Boxes, arrows and words of an SVG picture, for light and dark pages.

Colours stand in one style sheet, twice: a viewer that prefers dark gets the second. Words are text,
never outlines, so that they can be read aloud, searched and translated. A picture is refused when
words do not fit their box or run into other words; widths are those of a wide font (DejaVu Sans),
so that they hold for others too.
"""
from html import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
SIZE = 14
LINE = 19

# kind of a box: (fill, border) for light, then for dark
KINDS = {
    "plain": (("#f3f4f6", "#6b7280"), ("#262b33", "#8b95a5")),
    "state": (("#e3eefc", "#2f6fbf"), ("#173252", "#6ea8ee")),
    "kept": (("#fdf1d8", "#a66f00"), ("#40310f", "#e0ac47")),
    "good": (("#e2f4e6", "#2c7d42"), ("#143a20", "#63c07e")),
    "hostile": (("#fde5e3", "#b3362b"), ("#4a1b17", "#f08a80")),
    "zone": (("none", "#9aa3af"), ("none", "#6b7482")),
}
LIGHT = {"page": "#ffffff", "ink": "#1b1f24", "faint": "#4b5563", "line": "#4b5563", "bad": "#b3362b"}
DARK = {"page": "#14171c", "ink": "#e8ebef", "faint": "#b3bcc8", "line": "#aab3c0", "bad": "#f08a80"}


class DoesNotFit(Exception):
    """Words that are too long for their place."""


def letter_width(letter):
    if letter in "iljI.,:;'|!()[] ":
        return 0.34
    if letter in "frt-/":
        return 0.42
    if letter in "mwMW@→":
        return 0.95
    return 0.71 if letter.isupper() or letter.isdigit() else 0.62


def width(text, size=SIZE, is_bold=False):
    return sum(map(letter_width, text)) * size * (1.1 if is_bold else 1)


def is_overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def is_inside(inner, outer):
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def is_crossed(place, start, end):
    """Whether a line passes through a rectangle, looked at in small steps."""
    steps = 200
    for step in range(steps + 1):
        x = start[0] + (end[0] - start[0]) * step / steps
        y = start[1] + (end[1] - start[1]) * step / steps
        if place[0] < x < place[2] and place[1] < y < place[3]:
            return True
    return False


def style(theme=None):
    """The style sheet: both themes, or only the one that is named."""
    def rules(colours, index):
        lines = [f".page{{fill:{colours['page']}}}", f"text{{fill:{colours['ink']}}}",
                 f".faint{{fill:{colours['faint']}}}", f".bad{{fill:{colours['bad']}}}",
                 f".line{{stroke:{colours['line']}}}", f".head{{fill:{colours['line']}}}",
                 f".line.no{{stroke:{colours['bad']}}}", f".head.no{{fill:{colours['bad']}}}"]
        lines += [f".{kind}{{fill:{both[index][0]};stroke:{both[index][1]}}}" for kind, both in KINDS.items()]
        return "".join(lines)

    common = (f"text{{font-family:{FONT};font-size:{SIZE}px}}.bold{{font-weight:600}}"
              ".small{font-size:13px}.line{fill:none;stroke-width:1.6}"
              "rect{stroke-width:1.4}.zone{stroke-dasharray:6 4}")
    if theme:
        return common + rules(LIGHT if theme == "light" else DARK, 0 if theme == "light" else 1)
    return f"{common}{rules(LIGHT, 0)}@media (prefers-color-scheme:dark){{{rules(DARK, 1)}}}"


class Canvas:
    def __init__(self, name, wide, high, title, description):
        self.name, self.wide, self.high = name, wide, high
        self.title, self.description = title, description
        self.parts, self.words, self.boxes, self.segments = [], [], [], []

    def text(self, x, y, words, anchor="start", kind="", size=SIZE):
        """One line of words; `y` is its base line."""
        is_bold = "bold" in kind
        long = width(words, size, is_bold)
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        place = (left, y - size * 0.8, left + long, y + size * 0.25)
        self.claim(words, place)
        classes = f' class="{kind}"' if kind else ""
        align = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{align}{classes}>{escape(words)}</text>')

    def claim(self, words, place):
        left, top, right, bottom = place
        if left < 4 or right > self.wide - 4 or top < 4 or bottom > self.high - 4:
            raise DoesNotFit(f"{self.name}: {words!r} leaves the picture")
        for other, taken in self.words:
            if is_overlap(place, taken):
                raise DoesNotFit(f"{self.name}: {words!r} runs into {other!r}")
        self.words.append((words, place))

    def verify(self):
        """Words cross no border, and no arrow crosses them."""
        for words, place in self.words:
            for box in self.boxes:
                if is_overlap(place, box) and not is_inside(place, box):
                    raise DoesNotFit(f"{self.name}: {words!r} crosses a border")
            for start, end in self.segments:
                if is_crossed(place, start, end):
                    raise DoesNotFit(f"{self.name}: an arrow crosses {words!r}")

    def box(self, x, y, wide, high, kind, title, *lines):
        """A box with a bold title and lines below it, all centred."""
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="8"/>')
        self.boxes.append((x, y, x + wide, y + high))
        total = LINE * (1 + len(lines))
        base = y + (high - total) / 2 + SIZE
        for index, words in enumerate((title, *lines)):
            is_bold = index == 0
            if width(words, SIZE if is_bold else 13, is_bold) > wide - 12:
                raise DoesNotFit(f"{self.name}: {words!r} is too long for its box")
            self.text(x + wide / 2, base + index * LINE, words, "middle",
                      "bold" if is_bold else "small", SIZE if is_bold else 13)

    def zone(self, x, y, wide, high, title, kind="faint"):
        """A dashed frame with its name in the upper left corner."""
        self.parts.append(f'<rect class="zone" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="12"/>')
        self.boxes.append((x, y, x + wide, y + high))
        self.text(x + 12, y + 20, title, kind=f"{kind} bold small", size=13)

    def arrow(self, *points, kind="", both=False):
        """A line over the given points with a head at its end."""
        self.segments += zip(points, points[1:])
        way = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        mark = "no" if kind == "no" else "yes"
        start = f' marker-start="url(#{mark})"' if both else ""
        classes = f"line {kind}".strip()
        dashed = ' stroke-dasharray="5 4"' if kind == "no" else ""
        self.parts.append(f'<path class="{classes}" d="{way}"{dashed}{start} marker-end="url(#{mark})"/>')

    def note(self, x, y, *lines, anchor="middle", kind="small"):
        """Small lines beside an arrow."""
        for index, words in enumerate(lines):
            self.text(x, y + index * 17, words, anchor, kind, 13)

    def svg(self, theme=None):
        self.verify()
        heads = "".join(
            f'<marker id="{mark}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path class="head {mark if mark == "no" else ""}" d="M0 0L10 5L0 10z"/></marker>'
            for mark in ("yes", "no"))
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.wide} {self.high}" width="{self.wide}" '
            f'height="{self.high}" role="img" aria-labelledby="title description">',
            "<!-- Drawn by docs/pictures/draw.py. Do not edit. -->",
            f'<title id="title">{escape(self.title)}</title>',
            f'<desc id="description">{escape(self.description)}</desc>',
            f"<style>{style(theme)}</style>",
            f"<defs>{heads}</defs>",
            f'<rect class="page" width="{self.wide}" height="{self.high}" rx="12" stroke="none"/>',
            *self.parts, "</svg>", ""])
