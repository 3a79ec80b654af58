# rlock run --report: how a run ended, for programs that cannot tell from the exit status.

load ../support/helpers

# run_reported ARG...: sets OUT to the report, for `query`
run_reported() {
  try run --report "$T/report.json" "$@"
  OUT=$(<"$T/report.json")
}

@test "a command that ran: every fact in one JSON object on one line" {
  run_reported --key job --ttl 5 --renew-every 200ms -- sh -c 'sleep 1; exit 3'
  exits 3
  same "$(grep -v 'short for this network' "$T/err")" '' # which a busy machine makes it say
  same "$(wc -l <"$T/report.json")" 1
  query 'keys_unsorted == ["key","outcome","exit_status","command_status","signal","fence","slot","waited_ms","held_ms",
    "renewals","started_at","ended_at","message"]'
  query '.key == "job" and .outcome == "completed" and .exit_status == 3 and .command_status == 3 and .signal == null'
  query '.slot == null and .message == null and .renewals >= 1 and .waited_ms < 10000 and .held_ms >= 1000'
  query '.started_at <= .ended_at and (.started_at | test("^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$"))'
  query '.ended_at | sub("\\.[0-9]+"; "") | fromdate | now - . | . > -2 and . < 20'
}

@test "the fence and the slot are those that the command saw" {
  run_reported --key job --slots 3 -- sh -c 'echo "$RLOCK_FENCE $RLOCK_SLOT" >"$0"' "$T/seen"
  read -r fence slot <"$T/seen"
  query --argjson fence "$fence" --argjson slot "$slot" '.fence == $fence and .slot == $slot'
}

@test "a command that a signal ended: the report names the signal, and the status is 128+n" {
  run_reported --key job -- sh -c 'kill -KILL $$'
  exits 137
  query '.outcome == "completed" and .exit_status == 137 and .command_status == 137 and .signal == 9'
}

@test "conflict: what did not happen is null, and the message says who holds the lock" {
  hold job --holder deploy@web3
  run_reported --key job --wait 300ms -E 0 -- true
  exits 0
  query '.outcome == "conflict" and .exit_status == 0 and .waited_ms >= 300 and (.message | contains("deploy@web3"))'
  query '[.command_status, .signal, .fence, .slot, .held_ms, .renewals] | all(. == null)'
}

@test "of a run that was lost the report tells why, and not what followed from that" {
  start run rlock run job --ttl 1 --report "$T/report" -- sleep 600
  wait_until "$PATIENCE" exists rlock:job
  stop_redis
  finish "$PID"
  exits 76
  OUT=$(<"$T/report")
  query '.outcome == "lost" and (.message | startswith("lost job: it could not be renewed in time"))'
}

@test "a run that was evicted: outcome evicted, 76, and the message says that it was by force" {
  start run rlock run --report "$T/report.json" --key job --ttl 1 -- sleep 600
  wait_held job
  try release --force job
  finish "$PID"
  exits 76
  OUT=$(<"$T/report.json")
  query '.outcome == "evicted" and .exit_status == 76 and .signal == 15 and (.message | startswith("job was evicted by "))'
}

@test "a run that --max-runtime ended: outcome timeout, 124, and the command's own status" {
  run_reported --key job --max-runtime 300ms -- sleep 600
  exits 124
  query '.outcome == "timeout" and .exit_status == 124 and .command_status == 143 and .signal == 15'
}

@test "TERM while the command runs: outcome interrupted, with the command's status" {
  start run rlock run --report "$T/report.json" --key job -- sleep 600
  wait_held job
  wait_until "$PATIENCE" pgrep -f '^sleep 600' --parent "$(pgrep --parent "$PID")"
  kill -TERM "$PID"
  finish "$PID"
  exits 143
  OUT=$(<"$T/report.json")
  query '.outcome == "interrupted" and .exit_status == 143 and .command_status == 143 and .signal == 15'
}

@test "TERM while waiting: outcome interrupted, without a status or a fence" {
  hold job
  start run rlock run --report "$T/report.json" --key job -- true
  wait_for_text 'waiting for job' "$T/run.err"
  kill -TERM "$PID"
  finish "$PID"
  exits 143
  OUT=$(<"$T/report.json")
  query '.outcome == "interrupted" and .exit_status == 143 and .command_status == null and .fence == null'
  query '.waited_ms > 0 and .held_ms == null'
}

@test "a run that could not start is reported too: Redis away, no such command, options that do not fit" {
  run_reported --key job --redis redis://127.0.0.1:1 -- true
  exits 69
  query '.outcome == "error" and .exit_status == 69 and (.message | contains("127.0.0.1:1")) and .command_status == null'
  run_reported --key job -- /nowhere/command
  exits 127
  query '.outcome == "error" and .exit_status == 127'
  run_reported --key job --ttl 1 --kill-after 2 -- true
  exits 64
  query '.outcome == "error" and .exit_status == 64'
  run_reported -- true
  exits 64
  query '.key == null'
}

@test "a file that cannot be created is refused before the lock is taken" {
  local file
  mkdir "$T/folder"
  for file in "$T/none/report.json" "$T/folder" /proc/report.json ''; do
    refuses 78 --report run --key job --report="$file" -- touch "$T/ran"
  done
  [[ ! -e $T/ran ]]
}

@test "the file is replaced in one step, and nothing else is left beside it" {
  mkdir "$T/reports"
  echo old >"$T/reports/report.json"
  ln "$T/reports/report.json" "$T/old"
  try run --report "$T/reports/report.json" --key job -- cat "$T/reports/report.json"
  same "$OUT" old
  same "$(<"$T/old")" old
  same "$(ls "$T/reports")" report.json
  jq -e '.outcome == "completed"' "$T/reports/report.json"
}

@test "a report for standard output is /dev/stdout, not a file of the name -" {
  cd "$T"
  try run --key job --report - -- true
  exits 64
  contains "$ERR" '/dev/stdout or ./-'
  [[ ! -e - ]]
  try run --key job --report /dev/stdout -- true
  same "$(jq -r .outcome <<<"$OUT")" completed
  try run --key job --report ./- -- true
  same "$(jq -r .outcome ./-)" completed
}

@test "a new report has the permissions of any new file" {
  (umask 027; try run --report "$T/report.json" --key job -- true)
  same "$(stat -c %a "$T/report.json")" 640
}

@test "a run that is killed leaves no file" {
  mkdir "$T/reports"
  start run rlock run --report "$T/reports/report.json" --key job -- sleep 600
  wait_held job
  kill -KILL "$PID"
  finish "$PID"
  same "$(ls "$T/reports")" ''
}

@test "a symbolic link stays, and its target is replaced" {
  echo old >"$T/real.json"
  ln -s real.json "$T/link.json"
  try run --report "$T/link.json" --key job -- true
  [[ -L $T/link.json ]]
  jq -e '.outcome == "completed"' "$T/real.json"
}

@test "devices and pipes are written to" {
  try run --report /dev/null --key job -- true
  exits 0
  [[ -c /dev/null ]]
  try run --report /dev/stdout --key job -- true
  exits 0
  query '.outcome == "completed"'
}

@test "a report that cannot be written at the end does not change the exit status" {
  mkdir "$T/reports"
  try run --report "$T/reports/report.json" --key job -- rm -r "$T/reports"
  exits 0
  contains "$ERR" 'cannot write the report'
}

@test "a report that cannot take its place leaves no temporary file" {
  mkdir "$T/reports"
  try run --report "$T/reports/report.json" --key job -- mkdir "$T/reports/report.json"
  exits 0
  contains "$ERR" 'cannot write the report'
  same "$(ls -A "$T/reports")" report.json
}

@test "the command does not inherit where the report goes" {
  local without
  mkfifo "$T/pipe"
  exec 8<>"$T/pipe"
  try run --key job -- ls /proc/self/fd
  without=$OUT
  try run --report "$T/pipe" --key job -- ls /proc/self/fd
  exits 0
  same "$OUT" "$without"
}

@test "the report is valid JSON whatever bytes the key has" {
  local key=$'quote" back\\slash \ttab \e[31m \xc3\xbc'
  run_reported --key "$key" -- true
  exits 0
  query --arg key "$key" '.key == $key'
  [[ $(<"$T/report.json") != *[$'\t\e']* ]] || fail "$(<"$T/report.json")"
}

@test "/dev/stdout is the caller's standard output: a file behind it is written to, not replaced" {
  rlock run --key job --report /dev/stdout -- echo first >"$T/out"
  same "$(head -n 1 "$T/out")" first
  same "$(sed -n 2p "$T/out" | jq -r .outcome)" completed
}

@test "/dev/stderr and /dev/fd/N are the caller's descriptors too, and one that is not open is refused" {
  rlock run --report /dev/stderr --key job -- true 2>"$T/stderr"
  rlock run --report /dev/fd/7 --key job -- true 7>"$T/seven"
  for OUT in "$(<"$T/stderr")" "$(<"$T/seven")"; do query '.outcome == "completed"'; done
  try run --report /dev/fd/7 --key job -- true
  exits 78
  contains "$ERR" '--report /dev/fd/7: '
}

@test "symbolic links that lead back to themselves are refused before the lock is taken" {
  ln -s loop "$T/loop"
  try run --report "$T/loop" --key job -- touch "$T/ran"
  exits 78
  contains "$ERR" "--report $T/loop: Too many levels of symbolic links"
  absent "$T/ran"
}

@test "a report keeps the mode of the file that it replaces" {
  : >"$T/report"
  chmod 640 "$T/report"
  try run --key job --report "$T/report" -- true
  exits 0
  same "$(stat -c %a "$T/report")" 640
}

@test "a report keeps the owner and group of the file that it replaces, where root writes it" {
  ((EUID == 0)) || skip "only root can give files away"
  : >"$T/report"
  chown 12345:54321 "$T/report"
  try run --key job --report "$T/report" -- true
  exits 0
  same "$(stat -c %u:%g "$T/report")" 12345:54321
}

# The folders where another user may plant a file: a sticky one, and his own.
folders_of_others() {
  ((EUID == 0)) || skip 'this machine has one user only'
  mkdir -m 1777 "$T/sticky"
  mkdir "$T/his"
  chown 12345 "$T/his"
  echo precious >"$T/precious"
}

@test "a symbolic link that another user planted is not followed" {
  local folder
  folders_of_others
  for folder in sticky his; do
    ln -s "$T/precious" "$T/$folder/report"
    chown -h 12345 "$T/$folder/report"
    try run --key job --report "$T/$folder/report" -- true
    exits 78
  done
  same "$(<"$T/precious")" precious
}

@test "a symbolic link that another user plants while the command runs is replaced" {
  folders_of_others
  chmod 600 "$T/precious"
  try run --key job --report "$T/sticky/report" -- sh -c "ln -s '$T/precious' '$T/sticky/report' && chown -h 12345 '$T/sticky/report'"
  exits 0
  same "$(<"$T/precious")" precious
  same "$(stat -c '%F %u %a' "$T/sticky/report")" 'regular file 0 644'
}

@test "a pipe that another user planted in a sticky folder is refused" {
  folders_of_others
  mkfifo "$T/sticky/report"
  exec 8<>"$T/sticky/report" # before it is another's, which the kernel too may refuse
  chown 12345 "$T/sticky/report"
  try run --key job --report "$T/sticky/report" -- touch "$T/ran"
  exits 78
  [[ ! -e $T/ran ]]
}

@test "a file that another user planted in a sticky folder is replaced by one that this user cannot write" {
  folders_of_others
  : >"$T/sticky/report"
  chmod 666 "$T/sticky/report"
  chown 12345:12345 "$T/sticky/report"
  try run --key job --report "$T/sticky/report" -- true
  exits 0
  same "$(stat -c '%u %g %a' "$T/sticky/report")" '0 0 644'
  jq -e '.outcome == "completed"' "$T/sticky/report"
}

@test "a report in the folder of another user belongs to that user, as the one before did" {
  folders_of_others
  : >"$T/his/report"
  chown 12345 "$T/his/report"
  try run --key job --report "$T/his/report" -- true
  exits 0
  same "$(stat -c %u "$T/his/report")" 12345
}

@test "a file that is mounted by itself, as in a container, is overwritten, since nothing can replace it" {
  unshare -m true 2>/dev/null || skip "namespaces may not be made here"
  : >"$T/mounted"
  : >"$T/report"
  unshare -m --propagation private sh -c 'mount --bind "$0/mounted" "$0/report" &&
    exec rlock run --key job --report "$0/report" -- true' "$T"
  same "$(jq -r .outcome "$T/mounted")" completed
  same "$(find "$T" -name 'report.*')" ''
}
