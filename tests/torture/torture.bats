# tests/torture/run.sh runs the torture itself; these tests find what would go stale unnoticed.

load ../support/helpers

@test "the patches of every broken build that the torture must catch fit these sources" {
  local mutant
  for mutant in "$BATS_TEST_DIRNAME"/mutants/*.patch; do
    patch --dry-run --quiet --strip 1 --directory "$BATS_TEST_DIRNAME/../.." <"$mutant" || fail "$mutant does not fit"
  done
}

@test "every bug that the tests are to catch can be planted in these sources" {
  python3 "$BATS_TEST_DIRNAME/../mutants/plant.py" --fit
}

@test "a waiter that was passed is found, and what a kill left of a transaction is none" {
  same "$(passed_by_late 1)" "[('job', 'late', 'early')]"
  same "$(passed_by_late '')" '[]'
}

# passed_by_late CLAIM: the waiters that a grant passes, where an earlier one has such a claim, or none
passed_by_late() {
  python3 - "$BATS_TEST_DIRNAME" "$T/server.1.aof" "$1" <<'END'
import pathlib, sys
folder, path, claim = sys.argv[1:]
sys.path.insert(0, folder)
from aof import Log

def waits(token, ticket, claim):
    yield from ("MULTI", f"ZADD {{rlock:job}}:queue NX {ticket} {token}")
    if claim:
        yield from (["HSET", "{rlock:job}:waiters", token, f"{claim} 5 9 {ticket}"], "EXEC")

commands = [
    ["HSET", "{rlock:job}:meta", "state", "6 0 0 0 0 0"], *waits("early", 7, claim), *waits("late", 8, 1),
    "MULTI", "ZREM {rlock:job}:queue late", ["HSET", "{rlock:job}:meta", "state", "10 1 0 0 0 0"],
    ["HSET", "rlock:job", "rlock", "1", "late", "99 0 9 0 10"], "EXEC",
]  # fmt: skip
lines = []
for command in commands:
    words = command.split() if isinstance(command, str) else command
    lines += [f"*{len(words)}"] + [line for word in words for line in (f"${len(word)}", word)]
pathlib.Path(path).write_bytes("".join(f"{line}\r\n" for line in lines).encode())
print(Log(pathlib.Path(path)).passed)
END
}
