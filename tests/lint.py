#!/usr/bin/env python3
"""Finds tests that cannot fail: assertions whose failure the shell does not look at.

    lint.py FILE...     .bats and .bash files; says what it found, one line each

A test ends at the first command that fails, since bats sets -e. That is switched off inside whatever runs under `||`,
`&&`, `!`, `if`, `while`, `until` or in `$(...)`: of a function that is called there only the last command counts, and
what it asserted before that is not heard. It is not heard either on the left of `|`, or where `!` begins a statement
that others follow. A function that runs "$@" under one of those, as wait_until does, does so to whatever it is given.
"""

import collections
import json
import pathlib
import subprocess
import sys

AND, OR, PIPE, PIPE_ALL = 10, 11, 12, 13
ENDS = {"return", "exit", "skip", "continue", "break"}  # after these nothing is ignored


def parse(path):
    shown = subprocess.run(["shfmt", "-ln", "bats", "--to-json"], input=path.read_bytes(), stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)


def kind(statement):
    return (statement.get("Cmd") or {}).get("Type")


def literal(word):
    parts = word.get("Parts", [])
    return parts[0]["Value"] if len(parts) == 1 and parts[0]["Type"] == "Lit" else None


def words(statement):
    return [literal(word) for word in statement["Cmd"].get("Args", [])] if kind(statement) == "CallExpr" else []


def name_of(statement):
    return (words(statement) or [None])[0]


def runs_its_arguments(statement):
    first = (statement["Cmd"].get("Args") or [{}])[0] if kind(statement) == "CallExpr" else {}
    return any(
        inner.get("Type") == "ParamExp" and inner["Param"]["Value"] == "@"
        for part in first.get("Parts", [])
        for inner in part.get("Parts", [])
    )


def statements_in(node):
    """Every statement below a node, itself included, but not those of functions that are defined there."""
    if isinstance(node, list):
        for item in node:
            yield from statements_in(item)
    elif isinstance(node, dict):
        if node.get("Type") in ("FuncDecl", "TestDecl"):
            return
        if "Cmd" in node and "Position" in node:
            yield node
        for item in node.values():
            yield from statements_in(item)


def declarations_in(node):
    if isinstance(node, list):
        for item in node:
            yield from declarations_in(item)
    elif isinstance(node, dict):
        if node.get("Type") in ("FuncDecl", "TestDecl"):
            yield node
        for item in node.values():
            yield from declarations_in(item)


def unheard_in(node):
    """The statements directly under what switches -e off, with its name."""
    if isinstance(node, list):
        for item in node:
            yield from unheard_in(item)
        return
    if not isinstance(node, dict) or node.get("Type") in ("FuncDecl", "TestDecl"):
        return
    sort = node.get("Type")
    if sort == "BinaryCmd" and node["Op"] in (AND, OR):
        yield node["X"], "||" if node["Op"] == OR else "&&"
    elif sort == "BinaryCmd" and node["Op"] in (PIPE, PIPE_ALL):
        yield node["X"], "|"
    elif sort in ("IfClause", "WhileClause"):
        yield from ((statement, "if" if sort == "IfClause" else "while") for statement in node.get("Cond", []))
    elif sort in ("CmdSubst", "ProcSubst"):
        yield from ((statement, "$(...)") for statement in node.get("Stmts", []))
    if node.get("Negated"):
        yield {key: value for key, value in node.items() if key != "Negated"}, "!"
    for item in node.values():
        yield from unheard_in(item)


class Scope:
    """The functions that one file sees: its own, and those of tests/support."""

    def __init__(self, functions):
        self.functions = functions
        self.asserting = self.closure({"fail"}, self.asserts)
        self.fragile = self.closure(set(), self.is_fragile)
        self.runners = {name for name, body in functions.items() if self.is_runner(body)}

    def closure(self, known, predicate):
        """Grows a set of names while what is known makes others belong to it."""
        while True:
            more = {name for name, body in self.functions.items() if name not in known and predicate(body, known)}
            if not more:
                return known
            known = known | more

    def asserts(self, body, known):
        return any(name_of(s) in known or kind(s) in ("TestClause", "ArithmCmd") for s in self.steps(body))

    def is_fragile(self, body, known):
        """Whether it relies on -e: something that it asserts is not its last word."""
        calls = {name_of(s) for s in statements_in(body)}
        return bool(calls & known) or self.some_are_ignored(body, True)

    def some_are_ignored(self, node, is_last):
        """Whether an assertion here would go unheard with -e off."""
        inner = node.get("Cmd") or node
        sort = inner.get("Type")
        if sort == "Block":
            steps = inner.get("Stmts", [])
            return any(
                self.some_are_ignored(s, (is_last and i == len(steps) - 1) or name_of((steps + [{}])[i + 1]) in ENDS)
                for i, s in enumerate(steps)
            )
        if sort == "IfClause":
            branches = [inner.get("Then", []), inner.get("Else", {}).get("Then", [])]
            return any(self.some_are_ignored({"Type": "Block", "Stmts": b}, is_last) for b in branches)
        if sort in ("WhileClause", "ForClause"):
            return self.some_are_ignored({"Type": "Block", "Stmts": inner.get("Do", [])}, False)
        if sort == "BinaryCmd" and inner["Op"] in (AND, OR):
            return self.some_are_ignored(inner["Y"], is_last)
        return not is_last and (name_of(node) in self.asserting or sort in ("TestClause", "ArithmCmd"))

    def steps(self, body):
        """The statements whose failure fails the function: not the conditions of others."""
        unheard = {id(s) for s, _ in unheard_in(body)}
        return [s for s in statements_in(body) if id(s) not in unheard]

    def is_runner(self, body):
        unheard = [s for s, _ in unheard_in(body)]
        return any(runs_its_arguments(s) for s in unheard)

    def complaints(self, node):
        for statement, where in unheard_in(node):
            name = name_of(statement)
            if name in self.fragile or (where == "|" and name in self.asserting):
                yield statement, f"what {name} asserts is not heard under {where}"
        for statement in statements_in(node):
            call = words(statement)
            for word in call[1:] if call and call[0] in self.runners else ():
                if word in self.fragile:
                    yield statement, f"what {word} asserts is not heard, as {call[0]} calls it"
        for block in (s["Cmd"] for s in statements_in(node) if kind(s) == "Block"):
            for statement in block.get("Stmts", [])[:-1]:
                if statement.get("Negated"):
                    yield statement, "a statement that begins with ! never fails a test; write `|| fail`, or `if`"
                elif kind(statement) == "BinaryCmd" and statement["Cmd"]["Op"] == AND:
                    if name_of(statement["Cmd"]["X"]) in self.asserting and name_of(statement["Cmd"]["Y"]) not in ENDS:
                        yield statement, "what stands before && is not heard"


def functions_of(tree):
    return {f["Name"]["Value"]: f["Body"] for f in declarations_in(tree) if f["Type"] == "FuncDecl"}


def main(paths):
    trees = {path: parse(path) for path in paths}
    shared = {}
    for path, tree in trees.items():
        if path.suffix == ".bash":
            shared |= functions_of(tree)
    found = 0
    for path, tree in trees.items():
        scope = Scope({**shared, **functions_of(tree)})
        lines = collections.OrderedDict()
        for declaration in declarations_in(tree):
            for statement, what in scope.complaints(declaration["Body"]):
                lines[f"{path}:{statement['Position']['Line']}: {what}"] = True
        found += len(lines)
        for line in lines:
            print(line)
    sys.exit(found > 0)


main([pathlib.Path(name) for name in sys.argv[1:]])
