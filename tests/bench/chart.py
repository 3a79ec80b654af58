#!/usr/bin/env python3
"""Draws the two numbers that people ask for, from the tables of results.md, as bar charts in SVG.

    chart.py RESULTS.md DIRECTORY      writes DIRECTORY/overhead.svg and DIRECTORY/handoff.svg

A bar's length is on a logarithmic scale, because a shell loop and a C program are two orders of magnitude apart.
"""

import math
import pathlib
import sys
from html import escape

WIDTH, BAR, GAP, LABEL, TOP = 720, 18, 8, 110, 56
OURS, OTHERS = "#c2410c", "#94a3b8"


def rows_of(text, heading):
    """The rows of the table below `heading`, each a list of its cells."""
    section = text.split(f"### {heading}\n", 1)[1].split("\n###", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def bars(text, heading, column):
    return [(row[0], float(row[column])) for row in rows_of(text, heading) if row[0] != "none"]


def draw(title, unit, values):
    values = sorted(values, key=lambda bar: bar[1])
    least = min(value for _, value in values) / 2
    span = math.log(max(value for _, value in values) / least)
    height = TOP + len(values) * (BAR + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
        f'<text x="8" y="42" fill="#475569">{escape(unit)}, on a logarithmic scale; shorter is better</text>',
    ]
    for number, (name, value) in enumerate(values):
        y = TOP + number * (BAR + GAP)
        length = (WIDTH - LABEL - 90) * math.log(value / least) / span
        weight = "bold" if name == "rlock" else "normal"
        out += [
            f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end" font-weight="{weight}">{escape(name)}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{OURS if name == "rlock" else OTHERS}"/>',
            f'<text x="{LABEL + length + 6:.1f}" y="{y + 14}">{value:g}</text>',
        ]
    return "\n".join(out + ["</svg>", ""])


def main():
    text, target = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    overhead = bars(text, "Uncontended: `true` under the lock", 1)
    handoff = bars(text, "Hand-off: the end of one command to the start of the next, ms", 1)
    (target / "overhead.svg").write_text(draw("`true` under a free lock, start to end", "median, ms", overhead))
    (target / "handoff.svg").write_text(
        draw("The end of one command to the start of the next, one waiter", "median, ms", handoff)
    )


if __name__ == "__main__":
    main()
