"""Runs a command on a terminal of its own and prints what that shows as SVG, in which text stays text.

    picture.py COLUMNS COMMAND...

The picture has a dark background of its own, so that it can be read on light pages and dark ones.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from html import escape

ADVANCE, LINE, MARGIN, SIZE = 7.8, 18, 14, 13
BACKGROUND, PLAIN, PROMPT = "#0f172a", "#e2e8f0", "#94a3b8"
STYLES = {
    "1": 'font-weight="bold"',
    "2": 'fill="#94a3b8"',
    "31": 'fill="#f87171"',
    "32": 'fill="#4ade80"',
    "92": 'fill="#4ade80"',
    "33": 'fill="#fbbf24"',
}


def run(columns, command):
    """What the command writes to a terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execvp(command[0], command)
    output = b""
    try:
        while chunk := os.read(terminal, 4096):
            output += chunk
    except OSError:  # Linux reports so that the other side is closed
        pass
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit(f"{command}: {output.decode()}")
    return output.decode().replace("\r\n", "\n")


def spans(line):
    """A line with its colours as tspan elements."""
    out, style = "", ""
    for part in re.split(r"(\x1b\[\d+m)", line):
        if part.startswith("\x1b"):
            style = STYLES.get(part[2:-1], "")
        elif part:
            out += f"<tspan {style}>{escape(part)}</tspan>" if style else escape(part)
    return out


def text(number, line, colour=PLAIN):
    # textLength keeps the columns straight whatever font the reader has.
    shown = re.sub(r"\x1b\[\d+m", "", line)
    y = MARGIN + SIZE + number * LINE
    return (
        f'<text x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve" textLength="{len(shown) * ADVANCE:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{spans(line)}</text>'
    )


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    lines = [line.rstrip() for line in run(columns, command).splitlines()]
    width, height = round(2 * MARGIN + columns * ADVANCE), 2 * MARGIN + (len(lines) + 1) * LINE
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}">'
    )
    print(f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>')
    print(text(0, "$ " + " ".join(command), PROMPT))
    for number, line in enumerate(lines, 1):
        if line:
            print(text(number, line))
    print("</svg>")


if __name__ == "__main__":
    main()
