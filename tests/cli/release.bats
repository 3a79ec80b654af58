# rlock release: only the holder's token frees the lock.

load ../support/helpers
load ../support/servers

STRANGER=00000000000000000000000000000000

setup() {
  hermetic
  start_redis
  try acquire job
  exists rlock:job
  RLOCK_TOKEN=$OUT
}

not_released() { # STATUS ARG...: exits so, says one line, and the lock is as it was
  local want=$1 before
  shift
  before=$(dump rlock:job)
  try release "$@"
  exits "$want"
  same "$OUT" ''
  matches "$ERR" $'^rlock: [^\n]+$'
  same "$(dump rlock:job)" "$before"
}

@test "a server that names 60,000 holders costs --force seconds, not minutes" {
  start_fake targets
  try release job --force --redis-timeout 20
  exits 0
  same "$(wc -l <"$T/out")" 60000
  ((TOOK < 15000)) || fail "took $TOOK ms"
}

@test "release frees the lock, silently" {
  try release --key job --token "$RLOCK_TOKEN"
  exits 0
  same "$OUT$ERR" ''
  same "$(cli EXISTS rlock:job)" 0
}

@test "the keys that are left behind expire by themselves" {
  local key
  try release --key job --token "$RLOCK_TOKEN"
  for key in $(cli KEYS '*'); do
    matches "$key" '^\{rlock:job\}:(meta|history|ended:[0-9a-f]{16,32})$'
    (($(cli PTTL "$key") > 0)) || fail "$key stays for ever"
  done
}

@test "a second release finds nothing: 1" {
  try release --key job --token "$RLOCK_TOKEN"
  not_released 1 --key job --token "$RLOCK_TOKEN"
  contains "$ERR" job
}

@test "a stranger's token frees nothing: 1" {
  not_released 1 --key job --token "$STRANGER"
}

@test "a token whose lease ran out does not free the next holder's lock: 1" {
  cli DEL rlock:job
  try acquire job
  exits 0
  not_released 1 --key job --token "$RLOCK_TOKEN"
}

@test "the check of the owner and the removal are one script" {
  start monitor "$REDIS_CLI" -s "$REDIS_SOCK" MONITOR
  wait_for_text OK "$T/monitor.out"
  try release --key job --token "$RLOCK_TOKEN"
  exits 0
  cli ECHO finished
  wait_for_text finished "$T/monitor.out"
  same "$(grep rlock:job "$T/monitor.out" | grep -cvE 'lua\]|"EVAL(SHA)?"')" 0
}

@test "release takes key and token from the environment, and the command line outranks it" {
  export RLOCK_TOKEN
  RLOCK_KEY=job not_released 1 --token "$STRANGER"
  RLOCK_KEY=job not_released 1 other
  RLOCK_KEY=job try release
  exits 0
  same "$(cli EXISTS rlock:job)" 0
}

@test "another program's key is not touched: 1" {
  cli SET rlock:job "$RLOCK_TOKEN"
  not_released 1 --key job --token "$RLOCK_TOKEN"
}

@test "a malformed token is a usage error: 64" {
  local token
  for token in '' x "${STRANGER}0" "${STRANGER%?}" "${STRANGER%?}g" $'\xff'; do
    not_released 64 --key job --token="$token"
    contains "$ERR" --token
  done
}

@test "without a token: 64" {
  unset RLOCK_TOKEN
  not_released 64 --key job
  contains "$ERR" --token
}

@test "no Redis at the address: 69, and the message names it" {
  not_released 69 --key job --token "$RLOCK_TOKEN" --redis redis://127.0.0.1:1
  contains "$ERR" 127.0.0.1:1
}

@test "--force makes the holder stop its command, says who was evicted, and returns when the lock is free" {
  start run rlock run --key busy --holder deploy@web3 --ttl 1 -- sleep 600
  wait_held busy
  try release --force busy
  exits 0
  matches "$OUT" "^busy: evicted deploy@web3 pid $PID \"sleep 600\", gone after [0-9]+\.[0-9]s\$"
  same "$(cli EXISTS rlock:busy)" 0
  finish "$PID"
  exits 76
}

@test "--force does not wait for a lock that nobody renews" {
  try acquire job2 --ttl 1h
  try release --force job2
  exits 0
  matches "$OUT" '^job2: evicted [^ ]+ \(no process\) "[^"]+"$' # it says for how long it has waited, if it has
}

@test "--force says of a holder that did not answer that its lease has ended" {
  start run rlock run --key busy --holder deploy@web3 --ttl 1 -- sleep 600
  wait_held busy
  kill -STOP "$PID"
  try release --force busy
  kill -CONT "$PID"
  exits 0
  matches "$OUT" "^busy: evicted deploy@web3 pid $PID \"sleep 600\"; it did not give the lock up, and its lease ended after [0-9]+\.[0-9]s: its command was killed by then, unless it has --on-lost warn or both of its processes were stopped\$"
}

@test "--force says whom it waits for, and -w limits the wait: 75" {
  start run rlock run --key busy --holder deploy@web3 --ttl 6 -- sleep 600
  wait_held busy
  kill -STOP "$PID"
  try release --force busy -w 1200ms
  exits 75
  contains "$ERR" "rlock: waiting for deploy@web3 pid $PID \"sleep 600\" to give up busy, lease "
  contains "$ERR" " left; the eviction stands even if you stop waiting"
  contains "$ERR" "has not given up busy yet; its lease is no longer renewed and ends in "
  same "$OUT" ''
  same "$(cli EXISTS rlock:busy)" 1
  try status busy --json
  query '.[0].holders[0].evicted_by | test("@.* pid [0-9]+")'
  try release --force --now busy
  exits 0
  matches "$OUT" "^busy: evicted deploy@web3 pid $PID \"sleep 600\", which may run for up to [0-9.]+m?s more\$"
  same "$(cli EXISTS rlock:busy)" 0
  kill -KILL "$PID"
}

@test "--force of a holder that is dead says so and when the lock is free; it has died, and was not evicted" {
  local end
  hold busy --holder deploy@web3 --ttl 2
  end="pid $HOLDER \"sleep 600\""
  # shellcheck disable=SC2046 # words
  kill -KILL "$HOLDER" $(pgrep -P "$HOLDER") || true
  wait_until "$PATIENCE" gone "$HOLDER"
  try release --force busy -w 10ms
  exits 75
  matches "$ERR" "^rlock: busy: deploy@web3 $end has died; the lock is free when its lease ends, in [0-9.ms]+
rlock: busy: deploy@web3 $end has died; the lock is free when its lease ends, in [0-9.ms]+; --now breaks it at once\$"
  try release --force busy
  exits 0
  matches "$OUT" "^busy: deploy@web3 $end had died, and its lease ended after [0-9.]+s\$"
  try log busy --json
  query '.[0].end == "died"'
  try status busy --json
  query '.[0].counters | .evicted == 0 and .lost == 1'
}

@test "--force --now does not warn of a holder that is dead" {
  hold busy --ttl 60
  # shellcheck disable=SC2046 # words
  kill -KILL "$HOLDER" $(pgrep -P "$HOLDER") || true
  wait_until "$PATIENCE" gone "$HOLDER"
  try release --force --now busy
  exits 0
  matches "$OUT" "^busy: evicted .* pid $HOLDER \"sleep 600\", which seems to have died; its command may run on\$"
}

@test "--force tells a holder that seems to be dead, but renews its lease" {
  local free=31000 next=/proc/sys/kernel/ns_last_pid
  unshare --pid --fork --mount-proc sh -c "echo 30000 >$next" 2>/dev/null || skip "this machine has no namespaces"
  while [[ -e /proc/$free ]]; do free=$((free + 1)); done # a PID there which nobody has here
  start elsewhere unshare --pid --fork --kill-child --mount-proc sh -c \
    "echo $((free - 1)) >$next; rlock run busy --ttl 3 -- sleep 600; true"
  wait_held busy
  rlock status busy --json | jq -e '.[0].holders[0].dead'
  try release --force busy
  exits 0
  contains "$OUT" "busy: evicted $(id -un)@$(uname -n) pid $free "
}

@test "--force repeated, as after a lost answer, does no harm to the next holder" {
  local next
  start run rlock run --key busy --ttl 1 -- sleep 600
  wait_held busy
  start next rlock run --key busy -- sleep 600
  next=$PID
  wait_for_text waiting "$T/next.err"
  try release --force busy
  exits 0
  wait_until "$PATIENCE" holds_busy "$next"
  same "$(grep -c evicted <<<"$OUT")" 1
}

holds_busy() { cli HVALS rlock:busy | grep -q " $1 "; } # PID

@test "--force evicts every holder, and prints a line for each" {
  local i
  for i in 1 2 3; do try acquire many --slots 3 --holder "h$i"; done
  try release --force many
  exits 0
  same "$(sort "$T/out" | cut -d' ' -f1-3)" $'many: evicted h1\nmany: evicted h2\nmany: evicted h3'
  same "$(cli EXISTS rlock:many)" 0
}

@test "--force --fence breaks only that acquisition: 1 when another holds the lock" {
  local fence
  fence=$(cli HVALS rlock:job | grep -oE ' [0-9]{16} ' | tr -d ' ')
  not_released 1 --force --fence $((fence - 1)) job
  contains "$ERR" "job is not held with fence $((fence - 1)): "
  contains "$ERR" " has it with fence $fence; nothing changed"
  try release --force --fence "$fence" job
  exits 0
  contains "$OUT" 'job: evicted '
  try release --force job
  exits 1
  same "$OUT" ''
  contains "$ERR" 'job is not held: it is free; nothing changed'
}

@test "--force --now: the holder's words, its report, the log and the counters agree" {
  start holder rlock run busy --report "$T/report" -- sleep 600
  wait_until "$PATIENCE" exists rlock:busy
  try release --force --now busy
  exits 0
  finish "$PID"
  exits 76
  contains "$(<"$T/holder.err")" 'busy was evicted by '
  same "$(jq -r .outcome "$T/report")" evicted
  try log busy --json
  query '.[0].end == "evicted"'
  try status busy --json
  query '.[0].counters | .evicted == 1 and .lost == 0'
}

@test "-q does not hide why nothing was released" {
  try -q release --force nothing
  exits 1
  contains "$ERR" 'nothing is not held'
  try -q release --token 00000000000000000000000000000000 nothing
  exits 1
  contains "$ERR" 'nothing is not held by this token'
  try -q renew --token 00000000000000000000000000000000 nothing
  exits 1
  contains "$ERR" 'nothing is not held by this token: it is free, and no run of it is known; check its name'
}

@test "the name of an evicted holder is escaped" {
  try acquire evil --holder $'\e[31m\n\xe2\x80\xae'
  try release --force evil
  exits 0
  same "$(wc -l <"$T/out")" 1
  contains "$OUT" 'evicted \x1b[31m\n\u{202e} (no process)'
}

@test "a waiter gets a lock whose holder was evicted" {
  hold held
  start waiter rlock run --key held -- true
  wait_for_text 'waiting for held' "$T/waiter.err"
  try release --force held
  finish "$PID"
  exits 0
}

@test "another program's key is deleted only by force, and not with a fence" {
  cli SET rlock:theirs $'value\e[2J'
  try release --force --fence 1 theirs
  exits 1
  try release --force theirs
  exits 0
  same "$OUT" "theirs: deleted another program's key (string of 9 bytes)"
}

@test "--fence needs --force, and --token excludes it: 64" {
  not_released 64 --key job --fence 1
  not_released 64 --key job --force --token "$RLOCK_TOKEN"
}

@test "a release with a token that holds nothing any more says who holds the lock instead" {
  local token=$RLOCK_TOKEN other
  rlock release job --token "$token"
  try release job --token "$token"
  exits 1
  contains "$ERR" 'job is not held by this token: it was released already'
  token=$(rlock acquire job --ttl 0.5)
  wait_until 5 absent rlock:job
  try release job --token "$token"
  exits 1
  contains "$ERR" "it is free; the lease has ended, its holder was evicted, or the token is another lock's"
  other=$(rlock acquire job --holder somebody)
  try release job --token "$token"
  exits 1
  contains "$ERR" 'held by somebody '
  contains "$ERR" "with fence $(rlock status job --json | jq '.[0].holders[0].fence')"
  rlock release job --token "$other"
  cli SET rlock:job theirs
  try release job --token "$token"
  exits 1
  contains "$ERR" "another program's key is there"
}
