# The messages when Redis fails, which say which lock, where the address came from and what was not done.

load ../support/helpers

NOWHERE=redis://127.0.0.1:1

# says PART... : rlock's only line has each of them
says() {
  local part
  [[ $ERR == "rlock: "* && $ERR != *$'\n'* ]] || fail "expected one line" "     got: ${ERR@Q}"
  for part; do contains "$ERR" "$part"; done
}

@test "a run that cannot reach Redis names the lock, the address and its origin, and says that nothing was started" {
  try run -k backup --redis "$NOWHERE" -- touch "$T/ran"
  exits 69
  says 'backup: ' 127.0.0.1:1 '(from --redis)' '; the command was not started'
  RLOCK_REDIS=$NOWHERE try run -k backup -- touch "$T/ran"
  exits 69
  says 'backup: ' '(from RLOCK_REDIS)'
  unset RLOCK_REDIS
  REDIS_URL=$NOWHERE try run -k backup -- touch "$T/ran"
  says '(from REDIS_URL)'
  printf '\nredis = %s\n' "$NOWHERE" >"$T/conf"
  try run -k backup --config "$T/conf" -- touch "$T/ran"
  says "$T/conf:2"
  [[ ! -e $T/ran ]]
}

@test "of several servers in a file, the message names the line of the one that failed" {
  printf 'redis = %s\n' "$RLOCK_REDIS" "$NOWHERE" redis://127.0.0.1:2 >"$T/conf"
  unset RLOCK_REDIS
  try check --config "$T/conf"
  exits 69
  matches "$ERR" "redis://127.0.0.1:1: [^"$'\n'"]* [(]from $T/conf:2: redis[)]"
  matches "$ERR" "redis://127.0.0.1:2: [^"$'\n'"]* [(]from $T/conf:3: redis[)]"
  printf 'redis = %s\nredis = %s\n' "$NOWHERE" "$NOWHERE" >"$T/conf"
  refuses 78 "$T/conf:2: $NOWHERE and $NOWHERE are the same server" run -k backup --config "$T/conf" -- true
}

@test "where no address was given, the message names the default and how to set another" {
  unset RLOCK_REDIS
  # Another program may listen on that port: in a network namespace of its own nobody does.
  local namespace=(--net)
  ((EUID == 0)) || namespace+=(--map-root-user)
  STATUS=0
  ERR=$(unshare "${namespace[@]}" rlock run -k backup -- true 2>&1) || STATUS=$?
  [[ $ERR != *unshare* ]] || skip "this machine has no namespaces"
  exits 69
  says 'backup: redis://127.0.0.1:6379/0' '(the default address; set RLOCK_REDIS, or redis = URL in /etc/rlock.conf)'
  # Where one does listen, `check` says that no other machine is kept out.
  OUT=$(unshare "${namespace[@]}" bash -c 'ip link set lo up
    "$1" --daemonize yes --save "" --dir "$0" --pidfile "$0/local.pid" >"$0/local.log"
    for ((i = 0; i < 1000; i++)); do "$2" ping >"$0/ping" 2>&1 && break || sleep 0.01; done
    rlock check
    kill "$(<"$0/local.pid")"' "$T" "$REDIS_SERVER" "$REDIS_CLI" 2>&1) || STATUS=$?
  contains "$OUT" "redis://127.0.0.1:6379/0 in "
  contains "$OUT" " ms, the default address, which is this machine's own: set RLOCK_REDIS, or redis = URL in /etc/rlock.conf"
  ERR=$(RLOCK_REDIS='' unshare "${namespace[@]}" rlock run -k backup -- true 2>&1) || STATUS=$?
  says '(the default address, as RLOCK_REDIS is empty; set RLOCK_REDIS'
}

@test "the other subcommands say what they did not do" {
  export RLOCK_REDIS=$NOWHERE RLOCK_TOKEN=0123456789abcdef0123456789abcdef
  try acquire job
  exits 69
  says 'job: ' '; nothing was acquired'
  try renew job
  exits 69
  says 'job: ' '; the lease was not extended'
  try release job
  exits 69
  says 'job: ' '; nothing was released'
  try status job
  exits 69
  says 'job: ' '; it is not known who holds it'
  try status
  exits 69
  matches "$ERR" '\(from RLOCK_REDIS\)$'
  try log job
  exits 69
  says 'job: ' '; it is not known who held it'
  try log
  exits 69
  matches "$ERR" '\(from RLOCK_REDIS\)$'
}

@test "a wait that ends without an answer is told from an attempt that failed at once" {
  hold job --ttl 3
  start waiter rlock run job -w 4s -- true
  wait_for_text 'waiting for job' "$T/waiter.err"
  stop_redis
  finish "$PID"
  exits 69
  matches "$(<"$T/waiter.err")" $'\nrlock: job: the wait of 4s is over: redis://127.0.0.1:[^\n]*; the command was not started$'
}

@test "a report has the same message" {
  try run -k backup --redis "$NOWHERE" --report "$T/report" -- true
  exits 69
  same "$(jq -r .message "$T/report")" "${ERR#rlock: }"
}

@test "a replica is named as such in the message" {
  local master=$REDIS_PORT
  start_redis --replicaof "127.0.0.1 $master"
  wait_until "$PATIENCE" is_replica
  try run -k job -w 1 -- true
  exits 69
  contains "$ERR" 'this is a replica'
  contains "$ERR" 'redis-sentinel://'
  contains "$ERR" 'the command was not started'
  [[ $ERR != *READONLY* && $ERR != *user_script* ]]
}

is_replica() { cli ROLE | grep -q '^slave$'; }

@test "a URL in quotes is recognised in the message" {
  printf 'redis = "redis://127.0.0.1:%s"\n' "$REDIS_PORT" >"$T/conf"
  RLOCK_REDIS='' refuses 78 'without quotes' acquire job --config "$T/conf"
}

@test "a nested rlock that lacks the password says what is handed on and what is not" {
  cli CONFIG SET requirepass s3cret >/dev/null
  RLOCK_PASSWORD=s3cret try run -k outer -- rlock status inner
  exits 77
  contains "$ERR" '--password-file'
  contains "$ERR" RLOCK_PASSWORD
  [[ $ERR != *s3cret* ]]
  (umask 77 && echo s3cret >"$T/password")
  try run --password-file "$T/password" -k outer -- rlock run -k inner -- true
  exits 0
  cli -a s3cret CONFIG SET requirepass '' >/dev/null
}

@test "a server's refusal that repeats our password is not printed as it is" {
  local refusal
  for refusal in "unknown command 'AUTH', with args beginning with: 's3cret' " "s3cret and s3cret are wrong"; do
    rm -f "$T/port"
    start fake python3 "$BATS_TEST_DIRNAME/../support/refuser.py" "$T/port" "-ERR $refusal"
    wait_until "$PATIENCE" test -s "$T/port"
    RLOCK_PASSWORD=s3cret try acquire job --redis "redis://127.0.0.1:$(<"$T/port")"
    ((STATUS != 0))
    contains "$ERR" 'AUTH refused'
    [[ $ERR != *s3cret* ]] || fail "$ERR"
  done
  contains "$ERR" 'AUTH refused: ERR *** and *** are wrong'
}

@test "a server that has our password and repeats it in an error does not make us print it" {
  local words url
  for words in 'ERR no database for s3cret' 'MOVED 1 s3cret' 'READY s3cret with args s3cret'; do
    for url in redis://127.0.0.1 redis-cluster://127.0.0.1; do
      rm -f "$T/fake.out"
      start fake python3 "$BATS_TEST_DIRNAME/../support/fake_server.py" parrot "$words"
      wait_until "$PATIENCE" has_lines "$T/fake.out" 1
      url+=:$(head -n 1 "$T/fake.out")
      RLOCK_PASSWORD=s3cret try acquire job -n --redis-timeout 1s --redis "$url"
      exits 69
      contains "$ERR" "${words%%s3cret*}***"
      [[ $ERR != *s3cret* ]] || fail "$ERR"
      [[ $url != redis://* ]] || RLOCK_PASSWORD=s3cret try acquire job -n --redis-timeout 1s --redis "$url/1"
      [[ $ERR != *s3cret* ]] || fail "$ERR"
    done
  done
}

@test "an error of 60 KB from a server is cut short" {
  start fake python3 "$BATS_TEST_DIRNAME/../support/refuser.py" "$T/port" "-ERR $(printf '%60000s' '' | tr ' ' x)"
  wait_until "$PATIENCE" test -s "$T/port"
  try acquire job --redis "redis://127.0.0.1:$(<"$T/port")" --redis-timeout 1
  ((${#ERR} < 1000)) || fail "${#ERR} bytes"
}

# ---- what the command of run inherits

@test "a message that is too long ends with a whole character" {
  local start text
  printf -v text '日%.0s' {1..2000}
  for start in '' x xx; do # a character has three bytes
    try run job -- "./$start$text"
    exits 127
    contains "$ERR" '日...'
    iconv -f UTF-8 -t UTF-8 <<<"$ERR" >/dev/null || fail "${ERR: -60}"
  done
}

@test "a message is written once more where the terminal was busy with what another process wrote" {
  can_trace
  strace -qq -o /dev/null -e trace=write -e inject=write:error=EAGAIN:when=1 rlock release --force nosuch 2>"$T/err" || true
  contains "$(<"$T/err")" 'rlock: nosuch is not held'
}

@test "the command gets no password, whichever variable it is in" {
  cli CONFIG SET requirepass s3cret >/dev/null
  local url=redis://:s3cret@127.0.0.1:$REDIS_PORT
  RLOCK_PASSWORD=s3cret REDISCLI_AUTH=s3cret try run -k job -- env
  exits 0
  [[ $OUT != *s3cret* ]] || fail "$OUT"
  unset RLOCK_REDIS
  REDIS_URL=$url try run -k job -- env
  exits 0
  [[ $OUT != *s3cret* ]] || fail "$OUT"
  REDIS_URL="redis://h?password=s3cret" RLOCK_REDIS=$url try run -k job -- env
  exits 0
  [[ $OUT != *s3cret* ]] || fail "$OUT"
  cli -a s3cret CONFIG SET requirepass '' >/dev/null
}

@test "the command gets the settings of the connection as they are in use" {
  RLOCK_REDIS_TIMEOUT=1s try run -k job --redis-timeout 3s --max-lease 50s --no-command -- env
  exits 0
  contains "$OUT" $'RLOCK_REDIS_TIMEOUT=3s\n'
  contains "$OUT" $'RLOCK_MAX_LEASE=50s\n'
  contains "$OUT" $'RLOCK_NO_COMMAND=yes\n'
  same "$(grep -c '^RLOCK_REDIS_TIMEOUT=' <<<"$OUT")" 1
}

@test "relative files are handed on by their absolute names" {
  mkdir "$T/here" "$T/there"
  cd "$T/here"
  cli CONFIG SET requirepass s3cret >/dev/null
  (umask 77 && echo s3cret >password && echo 'redis-timeout = 3s' >conf)
  try run -k job --password-file password --config conf -- \
    sh -c "cd $T/there && rlock run -k other -- env"
  exits 0
  contains "$OUT" "RLOCK_PASSWORD_FILE=$T/here/password"
  contains "$OUT" "RLOCK_CONFIG=$T/here/conf"
  cli -a s3cret CONFIG SET requirepass '' >/dev/null
}

@test "a password file that is a pipe is read once, and not handed on" {
  cli CONFIG SET requirepass s3cret >/dev/null
  try run -k job --password-file <(echo s3cret) -- env
  exits 0
  [[ $OUT != *RLOCK_PASSWORD_FILE* ]]
  mkfifo "$T/fifo"
  start writer sh -c "(printf s3c; sleep 0.3; echo ret) >'$T/fifo'"
  try acquire job --password-file "$T/fifo"
  exits 0
  cli -a s3cret CONFIG SET requirepass '' >/dev/null
}

@test "ps does not show the password of a URL while the command runs" {
  cli CONFIG SET requirepass s3cret >/dev/null
  start holder rlock run -k job --redis "redis://:s3cret@127.0.0.1:$REDIS_PORT" -- sh -c "touch '$T/runs' && exec sleep 600"
  wait_until "$PATIENCE" test -e "$T/runs"
  local file
  for file in /proc/"$PID"/cmdline $(pgrep -P "$PID" | sed 's#.*#/proc/&/cmdline#'); do
    ! grep -aq s3cret "$file" || fail "$(tr '\0' ' ' <"$file")"
  done
  cli -a s3cret CONFIG SET requirepass '' >/dev/null
}

@test "a key that others can read causes a warning" {
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$T/key" -out "$T/cert" 2>/dev/null
  chmod 644 "$T/key"
  try acquire job --redis "rediss://127.0.0.1:$REDIS_PORT" --cert "$T/cert" --tls-key "$T/key" --redis-timeout 1
  contains "$ERR" "the private key in $T/key can be read by others"
}

@test "an encrypted key is refused at once; nobody is asked for its passphrase" {
  openssl req -x509 -newkey rsa:2048 -passout pass:x -subj /CN=localhost -keyout "$T/key" -out "$T/cert" 2>/dev/null
  try acquire job --redis "rediss://127.0.0.1:$REDIS_PORT" --cert "$T/cert" --tls-key "$T/key"
  exits 78
  contains "$ERR" 'it is encrypted'
}

# ---- scripts

@test "acquire --output shell ends a script that evaluates it with the status" {
  hold job
  try acquire job -n --output shell
  exits 75
  same "$OUT" '(exit 75);'
  same "$(sh -c 'eval "$(rlock acquire job -qn --output shell)" || exit; echo went on'; echo $?)" 75
  same "$(sh -c 'eval "$(rlock acquire job -qn -E 3 --output shell)" || exit; echo went on'; echo $?)" 3
  same "$(RLOCK_REDIS=$NOWHERE sh -c 'eval "$(rlock acquire job --output shell 2>/dev/null)" || exit; echo on'; echo $?)" 69
  same "$(sh -c 'eval "$(rlock acquire other --output shell)" || exit; echo "$RLOCK_KEY"')" other
}

@test "a script that the documented line evaluates ends with the status, and also where there is no rlock" {
  local line='eval "$(rlock acquire job -qn --hold-pid $$ --output shell || echo exit $?)"' words=' ; echo "went on with $RLOCK_KEY"'
  same "$(sh -c "$line$words")" 'went on with job'
  hold job
  same "$(sh -c "$line$words"; echo $?)" 75
  same "$(sh -c "${line/-qn/-qn -E 3}$words"; echo $?)" 3
  same "$(sh -c "${line/-qn/-qn -E 0}$words"; echo $?)" 0
  same "$(sh -c "eval \"\$(rlock acquire job -qn -E 0 --output shell)\" || exit$words"; echo $?)" 0
  same "$(RLOCK_REDIS=$NOWHERE sh -c "$line$words" 2>/dev/null; echo $?)" 69
  same "$(env PATH="$T/nowhere" /bin/sh -c "$line$words" 2>/dev/null; echo $?)" 127
}

@test "a script that sends an alert instead, as the help has it, ends with the status, also under set -e and without rlock" {
  local line='eval "$(rlock acquire job -qn --output shell || echo "(exit $?)")" || { status=$?; echo alert; exit $status; }'
  contains "$(rlock acquire --help)" 'eval "$(rlock acquire migration --output shell || echo "(exit $?)")" ||
    { status=$?; send-alert; exit $status; }'
  hold job
  for shell in 'sh -e' 'bash -e' sh bash; do
    # shellcheck disable=SC2086
    same "$($shell -c "$line; echo went on"; echo $?)" $'alert\n75'
  done
  same "$(env PATH="$T/nowhere" /bin/sh -ec "$line" 2>/dev/null; echo $?)" $'alert\n127'
  same "$(RLOCK_REDIS=$NOWHERE sh -ec "$line" 2>/dev/null; echo $?)" $'alert\n69'
  stop "$HOLDER"
  same "$(sh -ec "$line; echo \"\$RLOCK_KEY\"")" job
}

@test "a name that begins with a tilde is not expanded to a home directory" {
  same "$(sh -c 'eval "$(rlock acquire "~root" --output shell)" && echo "$RLOCK_KEY"')" '~root'
}

@test "--token - reads the token from standard input, one line of it" {
  local token
  token=$(rlock acquire job)
  same "$(printf '%s\nrest\n' "$token" | { rlock renew job --token - --ttl 40 && cat; })" rest
  (($(cli PTTL rlock:job) > 35000))
  rlock release job --token - <<<"$token"
  absent rlock:job
  try release job --token - <<<nonsense
  exits 64
  contains "$ERR" '--token -'
}

@test "--no-command tells Redis the program and not its arguments" {
  start holder rlock run -k job --no-command -- sleep 600 0
  wait_held job
  try status job --json
  query '.[0].holders[0].command == "sleep"'
  RLOCK_NO_COMMAND=yes start other rlock run -k other -- sleep 600 0
  wait_held other
  try status other --json
  query '.[0].holders[0].command == "sleep"'
}

@test "--verbose prints the time of every step" {
  try run -k job -v -- true
  exits 0
  matches "$ERR" '^rlock: [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3} '
  for step in "using $RLOCK_REDIS" 'holding job, fence ' 'starting the command; unless job is renewed, the command gets SIGTERM in ' \
    'the command has ended; the status is 0' 'released job'; do
    contains "$ERR" " $step"
  done
}

@test "--verbose prints connections, scripts, deadlines and signals too" {
  local step
  try run -k job -v --ttl 3 --kill-after 500ms --max-runtime 1200ms -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
  exits 124
  for step in "connected to $RLOCK_REDIS" "acquire: sending the script to $RLOCK_REDIS" \
    "acquire: $RLOCK_REDIS answers granted" "renew: $RLOCK_REDIS answers extended" \
    "starting the command for at most 1.2s; unless job is renewed, the command gets SIGTERM in " ' and KILL in ' \
    'telling the command to stop; KILL follows within 500ms' 'killing what is left of the command' \
    "release: $RLOCK_REDIS answers released"; do
    contains "$ERR" "$step"
  done
  same "$(grep -cvE '^rlock: ([0-9:]{8}\.[0-9]{3} |job: --max-runtime )' <<<"$ERR")" 0
  try run -k job -v --on-lost warn -- true
  contains "$ERR" 'starting the command; job must be renewed within '
  try run -k job -v --at-end kill -- sh -c 'sleep 600 &'
  contains "$ERR" ' the command has ended; stopping what it left running; KILL follows within 5s'
  [[ $ERR != *'telling the command'* ]] || fail "$ERR"
  try run -k job -v --at-end kill --kill-after 0 -- sh -c 'sleep 600 &'
  contains "$ERR" ' stopping what it left running; KILL follows at once'
  try run -k job -v --redis redis://127.0.0.1:1 -- true
  exits 69
  contains "$ERR" ' acquire: redis://127.0.0.1:1: connection failed: '
}

@test "whoever reads no further, as head does, is shown no message, even where SIGPIPE is ignored" {
  local command
  try run job -- true # for log -f --json, which prints no empty array
  mkfifo "$T/pipe"
  exec 8<>"$T/pipe" # a reader, or the next line would wait for one
  exec 7>"$T/pipe"
  exec 8>&-
  for command in log 'log --timeline' 'log -f' 'log -f --json' status 'status --json' check help; do
    STATUS=0
    # shellcheck disable=SC2086 # words
    (trap '' PIPE && exec timeout -k 2 "$PATIENCE" rlock $command) >&7 2>"$T/err" || STATUS=$?
    exits 141
    same "$(<"$T/err")" ''
  done
  STATUS=0
  (trap '' PIPE && exec rlock acquire job) >&7 2>"$T/err" || STATUS=$?
  exits 71 # a token that is lost is a failure
  contains "$(<"$T/err")" 'cannot write to stdout: Broken pipe'
}
