# What a run may cost, in numbers that do not depend on how busy the machine is. (Times are measured in tests/bench.)

load ../support/helpers

# The release build is judged, not one for a distribution or with sanitizers.
is_release() {
  local cache
  cache=$(dirname "$(realpath "$T/bin/rlock")")/CMakeCache.txt
  if [[ -e $cache ]]; then grep -q '^RLOCK_SHARED_LIBRARIES:BOOL=OFF' "$cache"; else is_static; fi
}

setup() {
  hermetic
  is_release || skip "a build with shared libraries"
  [[ $(ldd "$T/bin/rlock") != *lib@(a|t|ub)san* ]] || skip "a sanitizer's build is not judged by its size"
  start_redis
  try run --key job -- true # the server learns the scripts
  TRUE=$(type -P true)      # by its full path, so that the length of PATH does not matter
}

# at_most LIMIT COUNT WHAT: a little more than was measured when the limit was set
at_most() { (($2 > 0 && $2 <= $1)) || fail "$2 $3, at most $1 are allowed"; }

# trace COMMAND...: writes $T/trace, a line for each system call of the command and all that it starts
trace() {
  timeout -k 2 "$PATIENCE" strace -f -qq -e signal=none -o "$T/trace" "$@" 3>&- 4>&-
}

# COMMAND...: how many it makes; the least of several runs, since a process that wakes too early has to look again
calls() {
  for _ in {1..15}; do
    trace "$@"
    grep -vc '<\.\.\. .* resumed>' "$T/trace"
  done | sort -n | head -n 1
}

faults() { # COMMAND...: how many pages are brought in for it and all that it starts
  timeout -k 2 "$PATIENCE" python3 -c 'import os, sys
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
print("failed" if status else usage.ru_minflt)' "$@" 3>&- 4>&-
}

@test "an uncontended run makes few system calls besides its command's" {
  can_trace
  # 132 on Debian 12, a tenth of them for what a kill needs, opened beforehand; the C library of Debian 13 makes three more of
  # its own.
  at_most 136 $(($(calls rlock run --key job -- "$TRUE") - $(calls "$TRUE"))) "system calls"
}

@test "an uncontended run has few page faults besides its command's" {
  at_most 145 $(($(faults rlock run --key job -- "$TRUE") - $(faults "$TRUE"))) "page faults"
}

@test "a failure has few page faults besides those of a start" {
  # 13; with frames that the program has to sort itself, at its first exception, 90 and five milliseconds.
  local failure start
  failure=$(faults sh -c '! rlock status --redis unix:///nowhere 2>/dev/null')
  start=$(faults sh -c 'rlock __script release >/dev/null')
  at_most 40 $((failure - start)) "page faults"
}

@test "an uncontended run connects once and writes to Redis twice" {
  can_trace
  trace rlock run --key job -- "$TRUE"
  same "$(grep -c ' connect(' "$T/trace")" 1
  same "$(grep -Ec ' (send|write)[a-z]*\(.*"\*[0-9]' "$T/trace")" 2
}

@test "no shared library has to be found and bound" {
  contains "$(ldd "$T/bin/rlock" 2>&1)" 'not a dynamic executable'
}

@test "an uncontended run makes two script calls" {
  cli CONFIG RESETSTAT
  try run --key job -- true
  exits 0
  matches "$(cli INFO commandstats)" 'cmdstat_evalsha:calls=2,'
  [[ $(cli INFO commandstats) != *cmdstat_eval:* ]]
}

@test "keeper and guard together have less than 1 MB of memory of their own, and 4.5 MB with the program's pages" {
  local guard own all
  hold job
  guard=$(tr -d ' ' <"/proc/$HOLDER/task/$HOLDER/children")
  own=$(pss_of Pss_Anon "$HOLDER" "$guard")
  all=$(pss_of Pss "$HOLDER" "$guard") # how many pages of the program one access brings in is up to the kernel
  ((own > 0 && own < 1024)) || fail "$own kB"
  ((all > own && all < 4608)) || fail "$all kB"
}

# pss_of FIELD PID...: the sum, in kB
pss_of() {
  local field=$1
  shift
  (cd /proc && cat "${@/%//smaps_rollup}") | awk -v field="$field:" '$1 == field {sum += $2} END {print sum}'
}
