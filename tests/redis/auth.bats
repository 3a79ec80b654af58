# Authentication: passwords from every source, users with few permissions, and secrets that stay secret.

load ../support/helpers
load ../support/servers

setup() {
  hermetic
  start_redis --requirepass 'sé:cret@/#'
  cli() { REDISCLI_AUTH='sé:cret@/#' "$REDIS_CLI" -s "$REDIS_SOCK" --no-auth-warning "$@"; }
  echo 'sé:cret@/#' >"$T/password"
  chmod 600 "$T/password"
}

runs() { # ARG...: a run works
  try run --key job "$@" -- echo ran
  exits 0
  same "$OUT" ran
}

refused() { # PART ARG...: 77, one line, nothing started
  try run --key job "${@:2}" -- touch "$T/started"
  exits 77
  same "$(wc -l <"$T/err")" 1
  contains "$ERR" "$1"
  [[ ! -e $T/started && $ERR != *cret* ]]
}

with_url() { RLOCK_REDIS=redis://$1@127.0.0.1:$REDIS_PORT; } # USERINFO

@test "a missing or wrong password is refused with 77" {
  refused "a password is needed"
  with_url ':wrong'
  refused WRONGPASS
  with_url 'default:wrong'
  refused WRONGPASS
  with_url 'nobody'
  refused WRONGPASS
  with_url 'default:pass' # a part of the server's own words, which are not masked, since that would tell it
  refused 'WRONGPASS invalid username-password pair'
  same "$(cli DBSIZE)" 0
}

@test "a password that is refused is told with its place: the URL, a variable or a file" {
  with_url ':wrong'
  refused "; the password is from the URL in RLOCK_REDIS; the command was not started"
  with_url 'secret' # some clients take that for the password, so it is not shown
  refused "; a URL with a password alone is redis://:PASSWORD@HOST;"
  with_url ''
  RLOCK_PASSWORD=wrong refused "; the password is from RLOCK_PASSWORD;"
  REDISCLI_AUTH=wrong RLOCK_USERNAME=deploy refused "; the password of user deploy is from REDISCLI_AUTH;"
  echo wrong >"$T/password"
  refused "; the password is from password file $T/password;" --password-file "$T/password"
  (umask 77 && echo "redis = redis://:wrong@127.0.0.1:$REDIS_PORT" >"$T/conf")
  refused "; a user was given, but no password: use --password-file, or RLOCK_PASSWORD; " --username deploy
  unset RLOCK_REDIS
  refused "; the password is from the URL in $T/conf:1: redis;" --config "$T/conf"
}

@test "whoever gives no password is told how to give one, since Redis refuses a long request in other words" {
  refused "a password is needed (NOAUTH): use --password-file (in a configuration file: password-file = FILE), or RLOCK_PASSWORD"
  RLOCK_REDIS=$RLOCK_REDIS/2 refused "/2: a password is needed (NOAUTH): use --password-file"
}

@test "a server in protected mode is refused with 77" {
  start_fake protected
  try run --key job --wait 60s -- true
  exits 77
  matches "$ERR" ': Redis is in protected mode and refuses other machines \(DENIED\): set a password on the server, then use --password-file;'
  RLOCK_PASSWORD=secret try check
  exits 77
  contains "$OUT" 'Redis is in protected mode and refuses other machines'
}

@test "a password file may have been written on Windows" {
  printf 'sé:cret@/#\r\n' >"$T/password"
  runs --password-file "$T/password"
  same "$ERR" ''
}

@test "a user who may not load scripts sends them with each call" {
  cli ACL SETUSER plain on '>pw' '~*' '&*' +@all '-script|load' >/dev/null
  with_url 'plain:pw'
  runs
  same "$ERR" ''
}

@test "a password for a server that has none is refused" {
  stop_redis
  start_redis
  with_url ':some-password'
  try run --key job -- true
  exits 77
  contains "$ERR" "AUTH refused: the server has no password for its default user: leave the password out, or name another user; \
the password is from the URL in RLOCK_REDIS; "
}

@test "the password in a URL works, percent-encoded or not" {
  with_url ':s%C3%A9%3Acret%40%2F%23'
  runs
  same "$ERR" ''
  with_url 'default:sé:cret@/%23'
  runs
}

@test "a password file outranks RLOCK_PASSWORD, and that outranks REDISCLI_AUTH" {
  runs --password-file "$T/password"
  RLOCK_PASSWORD_FILE=$T/password runs
  RLOCK_PASSWORD='sé:cret@/#' REDISCLI_AUTH=wrong runs
  REDISCLI_AUTH='sé:cret@/#' runs
  RLOCK_PASSWORD_FILE=$T/password RLOCK_PASSWORD=wrong runs
  with_url ':s%C3%A9%3Acret%40%2F%23'
  RLOCK_PASSWORD=wrong runs
}

@test "a password on the command line works and is warned about once; one in the environment is not" {
  try run --key job --redis "redis://:s%C3%A9%3Acret%40%2F%23@127.0.0.1:$REDIS_PORT" -- echo ran
  exits 0
  same "$(wc -l <"$T/err")" 1
  contains "$ERR" "warning: a password on the command line"
  [[ $ERR != *cret* ]]
}

@test "password files that others can read are warned about, unusable ones are refused" {
  chmod 644 "$T/password"
  runs --password-file "$T/password"
  contains "$ERR" "can be read by others"
  runs --password-file "$T/password" --quiet
  same "$ERR" ''
  : >"$T/empty"
  printf 'a\0b\n' >"$T/binary"
  for file in "$T/missing" "$T" "$T/empty" "$T/binary"; do
    try run --key job --password-file "$file" -- true
    exits 78
    contains "$ERR" "password file $file: "
  done
}

@test "secrets appear neither in ps, nor in the command's environment, nor in any message" {
  export RLOCK_PASSWORD='sé:cret@/#' REDIS_URL=redis://:sé:cret@example.org
  with_url ':sé:cret@/%23'
  export RLOCK_REDIS
  try run -v --key job -- sh -c 'env; tr "\0" " " </proc/self/cmdline; tr "\0" " " <"/proc/$PPID/cmdline"'
  exits 0
  contains "$OUT" "RLOCK_TOKEN="
  [[ $OUT$ERR != *:cret* ]] || fail "$OUT$ERR"
  RLOCK_REDIS=redis://:sé:cret@127.0.0.1:1
  try run -v --key job -- true
  exits 69
  [[ $ERR != *cret* ]] || fail "$ERR"
}

@test "nothing is written before AUTH was answered" {
  start_fake auth
  try run --redis-timeout 1s --key job --password-file "$T/password" -- true
  exits 69
  same "$(sed -n 2p "$T/fake.out")" "b'*2\r\n\$4\r\nAUTH\r\n\$11\r\ns\xc3\xa9:cret@/#\r\n'"
  start_fake garbage
  try run --key job --password-file "$T/password" -- true
  exits 69
  [[ $(<"$T/fake.out") != *EVAL* ]]
}

@test "when the password changes while a lock is held, its file is read again on reconnect" {
  local i
  hold job --ttl 2s --password-file "$T/password"
  cli CONFIG SET requirepass new >/dev/null
  cli() { "$REDIS_CLI" -s "$REDIS_SOCK" --no-auth-warning -a new "$@"; }
  echo new >"$T/password"
  for i in 1 2 3; do
    cli CLIENT KILL TYPE normal SKIPME yes >/dev/null
    wait_until "$PATIENCE" is_renewed
  done
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(cli EXISTS rlock:job)" 0
}

is_renewed() { (($(cli PTTL rlock:job) > 1900)); }

@test "a user with the permissions that rlock names can do everything" {
  local rules
  cli ACL SETUSER poor on '>pw' '+eval' '+evalsha' >/dev/null
  RLOCK_REDIS=redis://poor:pw@127.0.0.1:$REDIS_PORT
  refused "; rlock needs more rights (~rlock:* ~{rlock:*}:*): \`rlock check\` with the same user and URL prints the ACL SETUSER line that suffices; the command was not started"
  rules=$(rlock check | sed -n 's/^ *ACL SETUSER poor //p')
  contains "$rules" '~rlock:* ~{rlock:*}:* &rlock:*:wake:* &{rlock:*}:wake:* +eval'
  # shellcheck disable=SC2086 # one word each
  cli ACL SETUSER good on '>pw' $rules
  RLOCK_REDIS=redis://good:pw@127.0.0.1:$REDIS_PORT
  hold job
  start waiter rlock run -v --key job -- echo next
  wait_for_text "waiting for job" "$T/waiter.err"
  try status
  exits 0
  matches "$OUT" $'\njob +x '
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  finish "$PID"
  exits 0
  [[ $(<"$T/waiter.err") != *polls* ]]
  echo pw >"$T/password"
  RLOCK_REDIS=redis://good@127.0.0.1:$REDIS_PORT
  try run --password-file "$T/password" --key '{tag}' --slots 2 --min-hold 1ms -- rlock renew
  exits 0
  try run --password-file "$T/password" --key job --prefix 'else*where:' -- true
  exits 77
  contains "$(rlock check --password-file "$T/password" --prefix 'else*where:')" '~else\*where:* '
}

@test "each verb that is refused exits with 77" {
  cli ACL SETUSER reader on '>pw' '~*' '&*' +@read >/dev/null
  RLOCK_REDIS=redis://reader:pw@127.0.0.1:$REDIS_PORT
  for verb in "renew job --token $(printf '%032d' 1)" "release job --token $(printf '%032d' 1)" "release job --force" \
    "acquire job" "status job"; do
    # shellcheck disable=SC2086 # words
    try $verb
    exits 77
    contains "$ERR" 'rlock needs more rights: `rlock check` with the same user and URL prints'
  done
}

@test "where a key is refused, which Redis does not name, the message says which keys are needed" {
  cli ACL SETUSER elsewhere on '>pw' '~foo:*' '&*' +@all >/dev/null
  RLOCK_REDIS=redis://elsewhere:pw@127.0.0.1:$REDIS_PORT
  for verb in "run -n job -- true" "status job" "log job" "hold job --for 1s" "release job --force"; do
    # shellcheck disable=SC2086 # words
    try $verb
    exits 77
    contains "$ERR" 'rlock needs more rights (~rlock:* ~{rlock:*}:*): `rlock check`'
  done
}

@test "a user who may not look at the lock is refused: the lock does not count as another program's" {
  cli ACL SETUSER blind on '>pw' '~*' '&*' +@all -hscan >/dev/null
  RLOCK_REDIS=redis://blind:pw@127.0.0.1:$REDIS_PORT
  for verb in "run -n --latest job -- true" "run -n -q -E 0 --once-per day job -- true" "status job" "release job --force"; do
    # shellcheck disable=SC2086 # words
    try $verb
    exits 77
    [[ $ERR != *'another program'* ]] || fail "$ERR"
  done
}

@test "with a password and a database AUTH comes before SELECT" {
  RLOCK_REDIS=$RLOCK_REDIS/1
  runs --password-file "$T/password"
  same "$(cli -n 1 HGET '{rlock:job}:meta' state | cut -d ' ' -f 2)" 1
}

@test "rlock warns about password files that the group or others can read, not about a private one" {
  local mode
  for mode in 640 604; do
    chmod "$mode" "$T/password"
    runs --password-file "$T/password"
    contains "$ERR" "password file $T/password can be read by others"
  done
  chmod 600 "$T/password"
  runs --password-file "$T/password"
  same "$ERR" ''
}

@test "passwords in the command's arguments are told to nobody: Redis, status, log, messages, report" {
  export RLOCK_PASSWORD='sé:cret@/#' REDISCLI_AUTH='sé:cret@/#'
  start monitor "$REDIS_CLI" -s "$REDIS_SOCK" MONITOR
  wait_for_text OK "$T/monitor.out"
  start holder rlock run -k job --report "$T/report" -- sh -c 'touch "$0" && exec sleep 600' "$T/runs" \
    psql postgres://bob:hushhush@db/x --password=hushhush --password hushhush TOKEN=hushhush
  wait_until "$PATIENCE" test -e "$T/runs"
  try status job --json
  query '.[0].holders[0].command | endswith("psql postgres://bob:***@db/x --password=*** --password *** TOKEN=***")'
  cp "$T/out" "$T/status"
  try run -k job -n -- true
  exits 75
  kill -TERM "$PID"
  finish "$PID"
  try log job --json
  grep -q 'psql%20postgres' "$T/monitor.out"
  ! grep hushhush "$T"/{out,err,status,report,holder.err,monitor.out} || fail 'a password was told'
}
