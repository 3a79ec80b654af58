#!/usr/bin/env python3
"""Says which lines the simulator never reaches, of the scripts and of what it runs of the program.

    reached.py BUILD_DIR [OPTION OF RLOCK-SIM...]     by default 3000 worlds, in a build that it makes there for itself

It needs gcov, and luac5.1 of Debian's package lua5.1.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OF_INTEREST = re.compile(r"src/(lock/|redis/(connection|server)|run/renewer).*\.cc$")


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def make(build):
    run("cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=--coverage")
    run("cmake", "--build", build, "--target", "rlock-sim")
    for counts in build.rglob("*.gcda"):
        counts.unlink()


def link(part, present):
    """The lines of a script as embed.cmake puts them together, each as (part, number)."""
    for number, line in enumerate((ROOT / f"src/lock/{part}.lua").read_text().splitlines(), 1):
        needs = re.match(r"-- NEEDS +(.*)", line)
        for name in needs[1].split() if needs else ():
            if name not in present:
                present.add(name)
                yield from link(name, present)
        if not needs:
            yield part, number


def missed_by_scripts(build):
    digests = dict(re.findall(r'const Script \w+\{"(\w+)", "(\w+)"', (build / "scripts.cc").read_text()))
    lines = {digest: list(link(verb, set())) for verb, digest in digests.items()}
    notes = (line.split() for line in (build / "lines").read_text().splitlines())
    # What stands behind the last line was added by the simulator.
    reached = {lines[digest][int(number) - 1] for digest, number in notes if int(number) <= len(lines[digest])}
    for part in sorted({part for script in lines.values() for part, _ in script}):
        path = ROOT / f"src/lock/{part}.lua"
        text = path.read_text().splitlines()
        listing = run("luac5.1", "-l", "-p", path)  # it knows which lines do something
        code = {int(number) for number in re.findall(r"^\t\d+\t\[(\d+)\]", listing, re.MULTILINE)}
        code = {number for number in code if not re.match(r" *(end$|function )", text[number - 1])}  # after a return
        yield f"src/lock/{part}.lua", code, {number for number in code if (part, number) not in reached}


def missed_by_program(build):
    code, reached = {}, {}
    for counts in build.rglob("*.gcda"):
        for file in json.loads(run("gcov", "--json-format", "--stdout", counts))["files"]:
            if found := OF_INTEREST.search(file["file"]):
                name = found[0]
                code.setdefault(name, set()).update(line["line_number"] for line in file["lines"])
                reached.setdefault(name, set()).update(line["line_number"] for line in file["lines"] if line["count"])
    for name in sorted(code):
        yield name, code[name], code[name] - reached[name]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    make(build)
    print(run(build / "rlock-sim", "--lines", build / "lines", *(sys.argv[2:] or ("--worlds", "3000", "--seed", "1"))))
    for name, code, missed in [*missed_by_scripts(build), *missed_by_program(build)]:
        print(f"{name}: {len(code) - len(missed)} of {len(code)} lines")
        text = (ROOT / name).read_text().splitlines()
        for number in sorted(missed):
            print(f"  {number:4}  {text[number - 1].strip()}")


if __name__ == "__main__":
    main()
