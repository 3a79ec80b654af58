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
  local early=(MULTI 'ZADD {rlock:job}:queue NX 7 early' "HSET {rlock:job}:waiters early '1 5 9 7'" EXEC)
  local late=("HSET {rlock:job}:meta state '6 0 0 0 0 0'"
    MULTI 'ZADD {rlock:job}:queue NX 8 late' "HSET {rlock:job}:waiters late '1 5 9 8'" EXEC
    MULTI 'ZREM {rlock:job}:queue late' "HSET {rlock:job}:meta state '10 1 0 0 0 0'"
    "HSET rlock:job rlock 1 late '99 0 9 0 10'" EXEC)
  same "$(passed "${early[@]}" "${late[@]}")" "[('job', 'late', 'early')]"
  same "$(passed "${early[@]:0:2}" "${late[@]}")" '[]'
}

passed() { # COMMAND...: the waiters that grants pass in an append-only file of these commands
  python3 - "$BATS_TEST_DIRNAME" "$T/server.1.aof" "$@" <<'END'
import pathlib, shlex, sys
sys.path.insert(0, sys.argv[1])
from aof import Log

path = pathlib.Path(sys.argv[2])
with path.open("w", newline="\r\n") as file:
    for words in map(shlex.split, sys.argv[3:]):
        print(f"*{len(words)}", *(f"${len(word)}\n{word}" for word in words), sep="\n", file=file)
print(Log(path).passed)
END
}
