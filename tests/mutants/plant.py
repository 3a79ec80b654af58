#!/usr/bin/env python3
"""Plants bugs, one at a time, and tells which of them the tests catch.

    plant.py BUILD_DIR [WORD...]     all of bugs.txt, or those whose name, file or tests contain one of the words

Each bug of bugs.txt is a few lines:

    == name of the bug | file | tests that should catch it
    the old text
    --
    the new text

The old text must stand in the file exactly once. A bug whose old text is gone, or that does not compile, is reported as
stale: it would prove nothing. The tests are those of tests/run.sh, by the names that it takes.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENOUGH = 0.95  # of the bugs must be caught


@dataclasses.dataclass
class Bug:
    name: str
    file: str
    tests: list
    old: str
    new: str

    def matches(self, words):
        return not words or any(word in f"{self.name} {self.file} {' '.join(self.tests)}" for word in words)


def read_bugs(text):
    for part in ("\n" + text).split("\n== ")[1:]:
        head, _, body = part.partition("\n")
        name, file, tests = (field.strip() for field in head.split("|"))
        old, _, new = body.partition("\n--")
        yield Bug(name, file, tests.split(), old.strip("\n"), new.strip("\n"))


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)


class Copy:
    """A copy of the sources in which bugs are planted, built incrementally."""

    def __init__(self, folder):
        self.source = folder / "source"
        self.build_dir = folder / "build"
        self.source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", self.source], stdin=archive.stdout, check=True)
        run("cmake", "-S", self.source, "-B", self.build_dir, "-DCMAKE_BUILD_TYPE=Release", check=True)

    def build(self):
        jobs = str(os.cpu_count())
        return run("cmake", "--build", self.build_dir, "--parallel", jobs, "--target", "rlock", "rlock-unit").returncode == 0

    def passes(self, tests):
        environment = {**os.environ, "RLOCK": str(self.build_dir / "rlock")}
        return run("bash", self.source / "tests/run.sh", *tests, env=environment).returncode == 0

    def judge(self, bug):
        path = self.source / bug.file
        sound = path.read_text()
        if sound.count(bug.old) != 1:
            return "STALE: its old text stands there %d times" % sound.count(bug.old)
        path.write_text(sound.replace(bug.old, bug.new))
        try:
            if not self.build():
                return "STALE: it does not compile"
            return "SURVIVED" if self.passes(bug.tests) else "caught"
        finally:
            path.write_text(sound)


def main():
    copy = Copy(pathlib.Path(sys.argv[1]))
    bugs = [bug for bug in read_bugs((HERE / "bugs.txt").read_text()) if bug.matches(sys.argv[2:])]
    needed = sorted({test for bug in bugs for test in bug.tests})
    if not copy.build() or not copy.passes(needed):
        sys.exit("the sources without a bug do not build or do not pass: " + " ".join(needed))
    verdicts = []
    for bug in bugs:
        verdicts.append(copy.judge(bug))
        print(f"{verdicts[-1]}: {bug.name} ({bug.file})", flush=True)
    caught = verdicts.count("caught")
    stale = sum(verdict.startswith("STALE") for verdict in verdicts)
    print(f"{caught} of {len(bugs)} caught, {verdicts.count('SURVIVED')} survived, {stale} stale")
    sys.exit(stale > 0 or caught < ENOUGH * len(bugs))


if __name__ == "__main__":
    main()
