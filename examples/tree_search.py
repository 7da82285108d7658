"""A tree search over live computers: expand by forks, score, prune, promote. No model is needed.

    tree_search.py tree.svg [--width 2] [--depth 3]

The search is for the steps that prepare a table best for a straight line. The table is in the
memory of an interpreter: a fork copies it with everything else, so a node goes on from the state of
its parent, and no step is ever carried out twice on the same path. Each level forks every kept node
once for each step (expand), measures what came of it (score) and deletes all but the best (prune).
The winner is promoted: it is a sandbox with the prepared table in its interpreter.

The tree is drawn as SVG: kept nodes are filled, the path to the winner has thick lines.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from dayfly import Sandbox

# A price follows the exponent of the area; some rows have no area, and some prices are mistyped.
PREPARE = """
import numpy as np, pandas as pd
random = np.random.default_rng(7)
area = random.uniform(1, 5, 400)
table = pd.DataFrame({"area": area, "price": np.exp(area + random.normal(0, 0.2, 400))})
table.loc[::9, "area"] = np.nan
table.loc[::25, "price"] *= 100
"""
STEPS = {
    "fill gaps with 0": "table = table.fillna(0)",
    "drop gaps": "table = table.dropna()",
    "cut the top 5%": "table = table[table.price <= table.price.quantile(0.95)]",
    "logarithm": "table = table.assign(price=np.log(table.price))",
}
# How much of the price a straight line explains; a step may lose a third of the rows at most.
SCORE = """
known = table.fillna({"area": table.area.mean()})
float(np.corrcoef(known.area, known.price)[0, 1] ** 2) if len(table) > 266 else 0.0
"""


@dataclass(eq=False)
class Node:
    """A state that was reached, by the steps of its path."""

    path: tuple[str, ...]
    sandbox: Sandbox
    score: float = 0.0
    children: list[Node] = field(default_factory=list["Node"])
    is_kept: bool = False
    is_on_path: bool = False

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


def score(sandbox: Sandbox) -> float:
    found = sandbox.run_code(SCORE).raise_for_error()
    return float(found.text or 0)


def expand(node: Node) -> list[Node]:
    """One fork of the node for each step that it has not made yet, all from the same moment."""
    steps = [step for step in STEPS if step not in node.path]
    forks = node.sandbox.fork_tree(len(steps))
    # All of them are in the tree before anything can fail, so that somebody deletes them.
    pairs = zip(steps, forks, strict=True)
    node.children = [Node((*node.path, step), fork) for step, fork in pairs]
    for child in node.children:
        child.sandbox.run_code(STEPS[child.path[-1]]).raise_for_error()
        child.score = score(child.sandbox)
    return node.children


def prune(nodes: list[Node], width: int) -> list[Node]:
    """Keeps the best, and deletes the sandboxes of the others. Of equals the first is kept."""
    ranked = sorted(nodes, key=lambda node: -node.score)
    for place, node in enumerate(ranked):
        node.is_kept = place < width
        if not node.is_kept:
            node.sandbox.close()
    return ranked[:width]


def search(root: Node, width: int, depth: int) -> Node:
    """Goes down level by level while that helps, and gives the best of all nodes.

    A host promises every sandbox its whole disk, so none is kept longer than it is needed.
    """
    best, frontier = root, [root]
    for _ in range(depth):
        level: list[Node] = []
        for node in frontier:
            level = prune(level + expand(node), width)
            if node is not best:
                node.sandbox.close()
        if level[0].score <= best.score:
            break
        best.sandbox.close()
        best, frontier = level[0], level
    return best


def mark(node: Node, goal: Node) -> bool:
    """Marks the nodes from here to the goal."""
    node.is_on_path = node is goal or any(mark(child, goal) for child in node.children)
    return node.is_on_path


def place(node: Node, level: int, row: int, at: dict[int, tuple[int, int]]) -> int:
    """Gives each node a column by its level and a row of its own; a parent stands at its first."""
    at[id(node)] = (20 + level * 210, 20 + row * 42)
    for child in node.children:
        row = place(child, level + 1, row, at)
    return row if node.children else row + 1


def draw(root: Node) -> str:
    at: dict[int, tuple[int, int]] = {}
    rows = place(root, 0, 0, at)
    lines: list[str] = []
    boxes: list[str] = []
    for node in root.walk():
        x, y = at[id(node)]
        for child in node.children:
            to_x, to_y = at[id(child)]
            width = 3 if child.is_on_path else 1
            bend = (x + 170 + to_x) // 2
            path = f"M{x + 170},{y + 15} C{bend},{y + 15} {bend},{to_y + 15} {to_x},{to_y + 15}"
            lines.append(f'<path d="{path}" fill="none" stroke="#667" stroke-width="{width}"/>')
        name = node.path[-1] if node.path else "start"
        fill = "#cde8d5" if node.is_on_path else "#e8edf5" if node.is_kept else "#fff"
        boxes.append(
            f'<rect x="{x}" y="{y}" width="170" height="30" rx="4" fill="{fill}" stroke="#667"/>'
            f'<text x="{x + 8}" y="{y + 20}">{escape(name)}</text>'
            f'<text x="{x + 162}" y="{y + 20}" text-anchor="end">{node.score:.2f}</text>'
        )
    wide, high = max(x for x, _ in at.values()) + 190, 30 + rows * 42
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}"'
    head += ' font-family="sans-serif" font-size="12">'
    return "\n".join([head, *lines, *boxes, "</svg>\n"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Searches a tree of steps in forks of a sandbox.")
    parser.add_argument("picture")
    parser.add_argument("--width", type=int, default=2, help="how many nodes a level keeps")
    parser.add_argument("--depth", type=int, default=3, help="how many steps a path has at most")
    options = parser.parse_args()
    if not 1 <= options.depth <= len(STEPS) or options.width < 1:
        parser.error(f"width is at least 1, and depth 1 to {len(STEPS)}")
    with Sandbox("code-interpreter", ttl_seconds=900, network="deny") as sandbox:
        sandbox.run_code(PREPARE).raise_for_error()
        root = best = Node((), sandbox, score(sandbox), is_kept=True)
        try:
            best = search(root, options.width, options.depth)
            if best is root:
                sys.exit("no step makes it better")
        finally:
            for node in root.walk():
                if node is not best:
                    node.sandbox.close()
    with best.sandbox as winner:
        winner.promote()
        rows = winner.run_code("len(table)").text
    mark(root, best)
    pathlib.Path(options.picture).write_text(draw(root))
    forks = sum(1 for _ in root.walk()) - 1
    gain = f"{best.score:.3f} from {root.score:.3f}"
    print(f"{' > '.join(best.path)}: {gain}, {rows} rows, {forks} forks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
