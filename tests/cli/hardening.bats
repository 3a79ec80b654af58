# What an attacker who found an error in rlock would meet: no executable stack, tables that cannot be written, guarded
# stacks, and copies that know how much room they have.

load ../support/helpers

setup() {
  hermetic
  BUILD=$(dirname "$(realpath "$T/bin/rlock")")
  ! is_sanitized || skip "sanitizers bring guards of their own"
}

# ours: the symbols that our own objects import
ours() {
  [[ -e $BUILD/librlock-core.a ]] || skip "this rlock was not built here"
  nm --undefined-only "$BUILD/librlock-core.a" 2>/dev/null
}

@test "the stack is not executable, and what the loader has filled in is read-only" {
  readelf --segments --wide "$T/bin/rlock" >"$T/segments"
  matches "$(grep GNU_STACK "$T/segments")" ' RW +0x'
  grep -q GNU_RELRO "$T/segments"
  # A static program has nothing to bind later.
  is_static || readelf --dynamic "$T/bin/rlock" | grep -q BIND_NOW
}

@test "nothing can be both written and executed, and constants cannot be executed" {
  readelf --segments --wide "$T/bin/rlock" >"$T/segments"
  ! grep -E '^ +LOAD .* RWE ' "$T/segments" || fail "a segment can be written and executed"
  ! grep -E '\.text .*\.rodata' "$T/segments" || fail "constants are in the segment of the code"
}

@test "stacks are guarded, and copies are checked" {
  ours >"$T/symbols"
  (($(grep -c ' __stack_chk_fail$' "$T/symbols") > 10)) || fail "$(grep -c ' __stack_chk_fail$' "$T/symbols") guarded files"
  grep -qE ' __[a-z]+_chk$' <(grep -v __stack_chk "$T/symbols")
}

@test "a static program has a fixed address, for speed; one with shared libraries has none" {
  local type=DYN
  ! is_static || type=EXEC
  matches "$(readelf --file-header "$T/bin/rlock")" "Type: +$type "
}
