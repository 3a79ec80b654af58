# rlock renew: only the holder, only longer.

load ../support/helpers

STRANGER=00000000000000000000000000000000

setup() {
  hermetic
  start_redis
  try acquire job --ttl 20
  exists rlock:job
  RLOCK_TOKEN=$OUT
}

lease() { cli PTTL rlock:job; }

# unchanged STATUS COMMAND...: exits so, says one line, and the lock is as it was
not_renewed() {
  local want=$1 before
  shift
  before=$(dump rlock:job)
  try renew "$@"
  exits "$want"
  same "$OUT" ''
  matches "$ERR" $'^rlock: [^\n]+$'
  same "$(dump rlock:job)" "$before"
}

@test "renew sets the remaining time, silently" {
  try renew --key job --token "$RLOCK_TOKEN" --ttl 60
  exits 0
  same "$OUT$ERR" ''
  (($(lease) > 55000 && $(lease) <= 60000)) || fail "$(lease)"
}

@test "renew never shortens what is left" {
  try renew --key job --token "$RLOCK_TOKEN" --ttl 60
  try renew --key job --token "$RLOCK_TOKEN" --ttl 1
  exits 0
  (($(lease) > 55000)) || fail "$(lease)"
}

@test "renew without --ttl means 30 s" {
  try renew --key job --token "$RLOCK_TOKEN"
  exits 0
  (($(lease) > 25000 && $(lease) <= 30000)) || fail "$(lease)"
}

@test "renew without --ttl inside a script or run means the lease with which it took that lock" {
  export RLOCK_TOKEN RLOCK_TTL_MS=600000
  RLOCK_KEY=job try renew
  exits 0
  (($(lease) > 590000 && $(lease) <= 600000)) || fail "$(lease)"
  try acquire other --ttl 20
  RLOCK_TOKEN=$OUT RLOCK_KEY=job try renew other
  exits 0
  (($(cli PTTL rlock:other) <= 30000)) || fail "$(cli PTTL rlock:other)"
  RLOCK_KEY=job RLOCK_TTL_MS=soon not_renewed 64
  contains "$ERR" RLOCK_TTL_MS
  RLOCK_KEY=job RLOCK_TTL_MS=soon try renew --ttl 15m
  exits 0
  (($(lease) > 890000)) || fail "$(lease)"
}

@test "renew takes key and token from the environment, and the command line outranks it" {
  export RLOCK_TOKEN
  RLOCK_KEY=job try renew --ttl 60
  exits 0
  (($(lease) > 55000)) || fail "$(lease)"
  RLOCK_KEY=other try renew --key job
  exits 0
  RLOCK_KEY=job not_renewed 1 --token "$STRANGER"
  RLOCK_KEY=job not_renewed 1 other
}

@test "a stranger's token renews nothing: 1" {
  not_renewed 1 --key job --token "$STRANGER"
  contains "$ERR" job
}

@test "a lock that is free or has run out is not created again: 1" {
  cli DEL rlock:job
  not_renewed 1 --key job --token "$RLOCK_TOKEN"
  same "$(cli EXISTS rlock:job)" 0
}

@test "a renewal that comes too late says what is there instead: 1" {
  local token fence
  not_renewed 1 --key other --token "$STRANGER"
  contains "$ERR" 'other is not held by this token: it is free, and no run of it is known; check its name'
  not_renewed 1 --key job --token "$STRANGER"
  contains "$ERR" "job is not held by this token: the lease has ended, its holder was evicted, or the token is another lock's; now it is held by $(id -un)@$(uname -n) (no process) "
  fence=$(rlock status job --json | jq '.[0].holders[0].fence')
  contains "$ERR" " with fence $fence"
  rlock release job --token "$RLOCK_TOKEN"
  not_renewed 1 --key job --token "$RLOCK_TOKEN"
  contains "$ERR" 'job is not held by this token: it was released already'
  cli SET rlock:job theirs
  not_renewed 1 --key job --token "$RLOCK_TOKEN"
  contains "$ERR" "another program's key is there"
}

@test "a renewal of a lock that its holder must give up names who wants it: 1" {
  start run rlock run --key busy -- sh -c 'echo "$RLOCK_TOKEN"; exec sleep 600'
  wait_until "$PATIENCE" test -s "$T/run.out"
  kill -STOP "$PID"
  try release --force busy -w 100ms
  exits 75
  try renew --key busy --token "$(<"$T/run.out")"
  exits 1
  matches "$ERR" "^rlock: busy is not renewed: its holder was evicted by $(id -un)@$(uname -n) pid [0-9]+\$"
  try renew -q --key busy --token "$(<"$T/run.out")"
  exits 1
  contains "$ERR" 'busy is not renewed'
  kill -CONT "$PID"
  finish "$PID"
  exits 76
}

@test "another program's key is not touched: 1" {
  cli SET rlock:job "$RLOCK_TOKEN"
  not_renewed 1 --key job --token "$RLOCK_TOKEN"
}

@test "an empty token asks whether the lock was acquired: 64" {
  not_renewed 64 job --token ''
  contains "$ERR" '--token: it is empty; was the lock acquired?'
}

@test "a malformed token is a usage error: 64, and it is not printed" {
  local token
  for token in '' x "${STRANGER}0" "${STRANGER%?}" "${STRANGER%?}g" $'\xff' "${STRANGER%?}"$'\n'; do
    not_renewed 64 --key job --token="$token"
    contains "$ERR" --token
  done
  not_renewed 64 --key job --token=open-sesame
  [[ $ERR != *open-sesame* ]] || fail "$ERR"
}

@test "without a token: 64" {
  unset RLOCK_TOKEN
  not_renewed 64 --key job
  contains "$ERR" 'no --token, and no RLOCK_TOKEN; `rlock acquire` prints one'
  contains "$ERR" --token
}

@test "no Redis at the address: 69, and the message names it" {
  not_renewed 69 --key job --token "$RLOCK_TOKEN" --redis redis://127.0.0.1:1
  contains "$ERR" 127.0.0.1:1
}
