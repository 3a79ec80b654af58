#!/usr/bin/env python3
"""Plants bugs, one at a time, and reports which of them the tests catch.

    plant.py BUILD_DIR [WORD...]     all of bugs.txt, or those whose name, file or tests contain one of the words
    plant.py --sim SECONDS BUILD_DIR [WORD...]
                                     the same, but by the simulator alone: new worlds, for so long each
    plant.py --fit                   only reports bugs that do not fit the sources or the tests any more

Each bug of bugs.txt is a few lines; a line that begins with # between them is a comment:

    == name of the bug | file | tests that should catch it [| which of them, a regular expression]
    the old text
    --
    the new text

The old text must occur in the file exactly once. Tests are named as for tests/run.sh. A bug is caught when they fail
twice in a row, since one failure may be due to a busy machine. A bug whose old text is gone, that does not compile, or
whose tests fail without it, proves nothing and is reported as stale.
"""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENOUGH = 0.95  # of the bugs must be caught


@dataclasses.dataclass
class Bug:
    name: str
    file: str
    tests: tuple
    which: str
    old: str
    new: str

    def matches(self, words):
        return not words or any(word in f"{self.name} {self.file} {' '.join(self.tests)}" for word in words)


def read_bugs(text):
    for part in re.split(r"^== ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        name, file, tests, *which = (field.strip() for field in head.split("|", 3))
        old, _, new = ("\n" + body).partition("\n--\n")
        yield Bug(name, file, tuple(tests.split()), "".join(which) or ".", old.strip("\n"), new.strip("\n"))


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)


class Copy:
    """A copy of the sources in which bugs are planted, built incrementally."""

    def __init__(self, folder, seconds):
        self.seconds = seconds  # for the simulator, if it judges alone
        self.source = folder.resolve() / "source"
        self.build_dir = self.source / "build"
        self.source.mkdir(parents=True, exist_ok=True)
        files = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", check=True).stdout
        for name in files.splitlines():
            self.take(name)
        run("cmake", "-S", self.source, "-B", self.build_dir, "-DCMAKE_BUILD_TYPE=Release", check=True)

    def take(self, name):
        """Leaves unchanged files alone, so that they need not be built again."""
        original, copy = ROOT / name, self.source / name
        if not original.is_file() or (copy.is_file() and copy.read_bytes() == original.read_bytes()):
            return
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(original.read_bytes())
        copy.chmod(original.stat().st_mode)

    def build(self):
        jobs = str(os.cpu_count())
        targets = [] if self.seconds else ["rlock", "rlock-unit"]
        targets += ["rlock-sim"] * pathlib.Path("/usr/include/lua5.1/lua.h").exists()
        return run("cmake", "--build", self.build_dir, "--parallel", jobs, "--target", *targets).returncode == 0

    def passes(self, tests, which):
        if self.seconds:
            scripts = self.source / "src/lock"
            result = run(self.build_dir / "rlock-sim", "--whole", "--seconds", self.seconds, "--scripts", scripts)
            print("".join(re.findall(r"^FAILED: .*\n", result.stdout, re.MULTILINE)), end="")
            return result.returncode == 0
        files = [str(path) for name in tests for path in sorted((self.source / "tests").glob(f"{name}.bats"))]
        environment = {**os.environ, "RLOCK": str(self.build_dir / "rlock")}
        jobs = os.environ.get("JOBS", "6")
        # As in tests/run.sh: under nohup, say, HUP would stay ignored and a bug about it would survive.
        bats = ["env", "--default-signal", "bats", "--tap", "--jobs", jobs, "--filter", which]
        result = run(*bats, *files, env=environment)
        return bool(files) and result.returncode == 0 and "\nok " in result.stdout

    @functools.lru_cache(maxsize=None)
    def is_sound(self, tests, which):
        return self.passes(tests, which) or self.passes(tests, which)

    def judge(self, bug):
        path = self.source / bug.file
        sound = path.read_text() if path.exists() else ""
        if sound.count(bug.old) != 1:
            return f"STALE, its old text stands there {sound.count(bug.old)} times"
        if not self.seconds and not self.is_sound(bug.tests, bug.which):
            return "STALE, its tests fail without it, or there are none"
        path.write_text(sound.replace(bug.old, bug.new))
        is_built = not (self.seconds and path.suffix == ".lua")  # the simulator reads the scripts
        try:
            if is_built and not self.build():
                return "STALE, it does not compile"
            tries = 1 if self.seconds else 2
            return "SURVIVED" if any(self.passes(bug.tests, bug.which) for _ in range(tries)) else "caught"
        finally:
            path.write_text(sound)
            if is_built:
                self.build()


def has_tests(bug):
    texts = [path.read_text() for name in bug.tests for path in (ROOT / "tests").glob(f"{name}.bats")]
    return any(re.search(bug.which, test) for test in re.findall(r'^@test "(.*)" \{$', "".join(texts), re.MULTILINE))


def fit():
    bugs = list(read_bugs((HERE / "bugs.txt").read_text()))
    texts = {bug.name: (ROOT / bug.file).read_text().count(bug.old) for bug in bugs}
    stale = [f"{name}: its old text stands there {count} times" for name, count in texts.items() if count != 1]
    stale += [f"{bug.name}: no test has such a name: {bug.which}" for bug in bugs if not has_tests(bug)]
    sys.exit("\n".join(stale) or 0)


def main():
    arguments = sys.argv[1:]
    seconds = arguments[1] if arguments[:1] == ["--sim"] and len(arguments) > 2 else None
    if seconds:
        del arguments[:2]
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "--fit"):
        sys.exit(__doc__)
    if arguments[0] == "--fit":
        fit()
    bugs = [bug for bug in read_bugs((HERE / "bugs.txt").read_text()) if bug.matches(arguments[1:])]
    copy = Copy(pathlib.Path(arguments[0]), seconds)
    if not copy.build():
        sys.exit("the sources do not build")
    verdicts = []
    for bug in bugs:
        begin = time.monotonic()
        verdicts.append(copy.judge(bug))
        print(f"{verdicts[-1]}: {bug.name} ({bug.file}, {time.monotonic() - begin:.0f} s)", flush=True)
    caught = verdicts.count("caught")
    stale = sum(verdict.startswith("STALE") for verdict in verdicts)
    print(f"{caught} of {len(bugs)} caught, {verdicts.count('SURVIVED')} survived, {stale} stale")
    sys.exit(stale > 0 or caught < ENOUGH * len(bugs))


if __name__ == "__main__":
    main()
