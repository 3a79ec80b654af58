# Configuration files: their format, where they are looked for, and what outranks what.

load ../support/helpers

setup() {
  hermetic
  start_redis
  HERE=$RLOCK_REDIS NOWHERE=redis://127.0.0.1:1
  unset RLOCK_REDIS
}

configure() { cat >"$T/rlock.conf"; } # from stdin

# wrong PART TEXT: a file of TEXT is refused, naming the file and PART
wrong() {
  printf '%s' "$2" >"$T/wrong.conf"
  refuses 78 "$T/wrong.conf$1" status --config "$T/wrong.conf"
}

@test "options are one to a line, with comments and blank lines between them" {
  configure <<END
# which Redis
redis = $HERE

   prefix=file:
	# an indented comment
redis-timeout =   3s
END
  try acquire job --config "$T/rlock.conf"
  exits 0
  same "$ERR" ''
  same "$(cli EXISTS file:job)" 1
}

@test "a value extends to the end of its line, whatever it contains" {
  configure <<END
redis = $HERE
holder = it's \$(touch $T/pwned) "q" # no comment = here
END
  try acquire job --config "$T/rlock.conf"
  try status job --config "$T/rlock.conf" --json
  query --arg holder "it's \$(touch $T/pwned) \"q\" # no comment = here" '.[0].holders[0].holder == $holder'
  [[ ! -e $T/pwned ]]
}

@test "an empty value is a value" {
  printf 'redis = %s\nprefix =\n' "$HERE" | configure
  try acquire job --config "$T/rlock.conf"
  exits 0
  same "$(cli EXISTS job)" 1
}

@test "line ends of other systems are accepted, and a last line without one" {
  printf 'redis = %s\r\nprefix = file:' "$HERE" | configure
  try acquire job --config "$T/rlock.conf"
  exits 0
  same "$(cli EXISTS file:job)" 1
}

@test "a section is for its subcommand alone, and outranks what comes before the sections" {
  configure <<END
redis = $HERE
ttl = 20s
prefix = all:
[acquire]
ttl = 10m
[ run ]
conflict-exit-code = 42
[acquire]
holder = somebody
END
  export RLOCK_CONFIG=$T/rlock.conf
  try acquire job
  exits 0
  (($(cli PTTL all:job) > 500000))
  try run --key job -n -- true
  exits 42
  contains "$ERR" 'held by somebody'
  try run --key other -- sh -c 'echo "$RLOCK_TTL_MS"'
  same "$OUT" 20000
}

@test "flags are yes or no" {
  configure <<END
redis = $HERE
[run]
nonblock = yes
quiet = yes
shared = no
END
  try acquire job --config "$T/rlock.conf"
  try run --key job --config "$T/rlock.conf" -- true
  exits 75
  same "$ERR" ''
}

@test "a wait in a file is for those who wait: a release without --force needs none" {
  printf 'redis = %s\nwait = 5\n' "$HERE" | configure
  export RLOCK_CONFIG=$T/rlock.conf
  refuses 64 '--wait needs --force' release job -w 5 --token 0123456789abcdef0123456789abcdef
  try acquire job
  exits 0
  try release job --token "$OUT"
  exits 0
}

@test "redis may repeat, and the servers of a stronger source replace all of them" {
  printf 'redis = %s\n' "$NOWHERE" redis://127.0.0.1:2 redis://127.0.0.1:3 | configure
  try acquire job --config "$T/rlock.conf"
  exits 69
  contains "$ERR" 127.0.0.1:3
  try acquire job --config "$T/rlock.conf" --redis "$HERE"
  exits 0
}

@test "what is not configuration is refused with file and line" {
  local value
  wrong ":2: unknown option 'colour'" $'# fine\ncolour = red\n'
  wrong ":1: unknown option 'config'; write --config on the command line" 'config = other.conf'
  wrong ":1: prefix: write the value without quotes" 'prefix = "x:"'
  wrong ":1: unknown option '--ttl'; write it without the dashes" '--ttl = 3'
  wrong ":1: unknown option 'timeout'; write \`wait = D\` (for the lock) or \`redis-timeout = D\`" 'timeout = 5'
  wrong ":1: unknown option 'password'; write \`password-file = FILE\`, or put it into the URL of" 'password = x'
  wrong ":1: unknown option 'server'; write \`redis = redis://HOST\`, which may end with :PORT" 'server = redis://db1'
  wrong ":1: unknown option 'host'; write \`redis = redis://HOST\`, which may end with :PORT" 'host = db1'
  wrong ":1: unknown option 'RLOCK_REDIS'; write \`redis = URL\`" 'RLOCK_REDIS=redis://db1'
  wrong ":1: unknown option 't'; write \`ttl = D\`" 't = 3'
  wrong ":1: unknown option 'q'; write \`quiet = yes\`" 'q = yes'
  wrong ":1: key has no place in a file, which would name the lock of every run; write --key on the command line" 'key = backup'
  wrong ":2: output has no place in a file, since a script depends on it; write --output on the command line" $'[acquire]\noutput = shell'
  wrong ":3: 'ttl ...' is neither" $'\n\nttl 30'
  wrong ":1: 'password ...' is neither" 'password s3cret'
  wrong ":1: 'password ...' is neither" 'password:s3cret'
  wrong ":1: 'redis://h' is neither" 'redis://h'
  wrong ":1: unknown section '[walk]'; write [run], or another subcommand; lines for all of them stand above the first section" '[walk]'
  wrong ":1: unknown section '[run'" '[run'
  wrong ":1: unknown section '[run backup]'; write [run], or another subcommand; a single lock has none" '[run backup]'
  wrong ":2: slots is not an option of release" $'[release]\nslots = 3'
  wrong ":2: force has no place in a file, which would break locks or hold them unasked" $'[release]\nforce = yes'
  wrong ":1: until has no place in a file, which would break locks or hold them unasked" 'until = 08:00'
  wrong ":2: ttl is given twice" $'ttl = 3\nttl = 4'
  for value in 'ttl = soon' 'ttl =' 'nonblock = true' 'nonblock =' 'slots = 0' 'redis = http://x' 'signal = NONE' \
    'redis-timeout = 61' 'on-lost = cry'; do
    wrong ":1: ${value%% =*}: " "$value"
  done
  wrong ':2: verbose and quiet: choose one' $'quiet = yes\nverbose = yes'
  wrong ':1: redis: a comment needs a line of its own' 'redis = redis://h # the one in the cellar'
  wrong ':1: redis: a comment needs a line of its own' 'redis = redis://h# main'
  wrong ':1: ttl: a comment needs a line of its own' 'ttl = 1m # long enough'
  wrong ':1: prefix: a comment needs a line of its own' 'prefix = a: # it would be a part of every key'
}

@test "every line is checked, whichever subcommand runs" {
  wrong ':2: ttl: ' $'[run]\nttl = soon'
}

@test "a file with NUL bytes, an endless one and a directory are refused" {
  printf 'prefix = a\0b\n' | configure
  refuses 78 "$T/rlock.conf: not a text file" status --config "$T/rlock.conf"
  refuses 78 /dev/zero status --config /dev/zero
  refuses 78 "$T: Is a directory" status --config "$T"
}

@test "a file that is asked for must exist" {
  refuses 78 "--config $T/none.conf: No such file" status --config "$T/none.conf"
  refuses 78 "$T/none.conf: No such file" --config "$T/none.conf" run --key job -- touch "$T/ran"
  RLOCK_CONFIG=$T/none.conf refuses 78 "RLOCK_CONFIG $T/none.conf: No such file" status
  [[ ! -e $T/ran ]]
}

@test "a file that may not be read is refused, even if none was asked for" {
  local limited=()
  ((EUID)) || limited=(setpriv '--bounding-set=-dac_override,-dac_read_search' --) # root may read everything
  mkdir "$T/.config"
  touch "$T/.config/rlock.conf"
  chmod 000 "$T/.config/rlock.conf"
  start status "${limited[@]}" rlock status
  finish "$PID"
  exits 78
  same "$(<"$T/status.err")" "rlock: $T/.config/rlock.conf: Permission denied"
}

@test "the user's file is found in XDG_CONFIG_HOME, or else in ~/.config" {
  mkdir -p "$T/.config" "$T/xdg"
  printf 'redis = %s\nprefix = home:\n' "$HERE" >"$T/.config/rlock.conf"
  printf 'redis = %s\nprefix = xdg:\n' "$HERE" >"$T/xdg/rlock.conf"
  try acquire job
  exits 0
  XDG_CONFIG_HOME=$T/xdg try acquire job
  exits 0
  XDG_CONFIG_HOME=$T/empty RLOCK_REDIS=$HERE try acquire job
  exits 0
  same "$(cli EXISTS home:job xdg:job rlock:job)" 3
}

@test "the user's file outranks the machine's, and one that is asked for replaces both" {
  unshare -m mount -t tmpfs none /etc || skip "may not mount"
  mkdir "$T/.config"
  echo 'prefix = mine:' >"$T/.config/rlock.conf"
  printf 'redis = %s\n' "$HERE" | configure
  with_etc() { # ARG...: rlock, where /etc/rlock.conf names another prefix and --wait
    STATUS=0
    unshare -m sh -ec 'mount -t tmpfs none /etc; printf "redis = %s\nprefix = etc:\nwait = 5\n" "$0" >/etc/rlock.conf
      exec rlock "$@"' "$HERE" "$@" >"$T/out" 2>"$T/err" 3>&- || STATUS=$?
  }
  with_etc acquire one
  exits 0
  HOME=$T/empty with_etc acquire two
  exits 0
  with_etc acquire three --config "$T/rlock.conf"
  exits 0
  same "$(cli EXISTS mine:one etc:two rlock:three)" 3
}

@test "the command line outranks the environment, which outranks files" {
  printf 'redis = %s\nprefix = file:\n' "$HERE" | configure
  export RLOCK_CONFIG=$T/rlock.conf
  try acquire one
  RLOCK_PREFIX=env: try acquire two
  RLOCK_PREFIX=env: try acquire three --prefix cmd:
  same "$(cli EXISTS file:one env:two cmd:three)" 3
  REDIS_URL=$NOWHERE try acquire four
  exits 69
  RLOCK_CONFIG=$T/none.conf try acquire five --config "$T/rlock.conf"
  exits 0
}

@test "an option that contradicts one of a file outranks it too" {
  configure <<END
redis = $HERE
nonblock = yes
quiet = yes
[acquire]
shared = yes
END
  export RLOCK_CONFIG=$T/rlock.conf
  try acquire job --exclusive
  exits 0
  try run --key job --wait 200ms --verbose -- true
  exits 75
  ((TOOK >= 200)) || fail "did not wait but $TOOK ms"
  contains "$ERR" 'waiting for job'
  try acquire many --slots 2
  exits 0
}

@test "a lease in which the times of the same file do not fit is the file's mistake, 78 with its line" {
  printf 'ttl = 10\n\nkill-after = 9\n' >"$T/conf"
  refuses 78 "$T/conf:3: --kill-after 9s does not fit into --ttl 10s" run --config "$T/conf" job -- true
  refuses 64 '--kill-after 9s does not fit into --ttl 8s' run --config "$T/conf" --ttl 8 job -- true
  [[ $ERR != *"$T/conf"* ]]
}

@test "options of a file that do not fit together are the mistake of their line, unless the command line gives one of them" {
  local lines two=$'redis = redis://127.0.0.1:1\nredis = redis://127.0.0.1:2\n'
  unset RLOCK_REDIS
  for lines in $'attempts = 3\n' "${two}replicas = 1" "${two}slots = 2" "${two}ttl = 2m" "${two}min-hold = 2m" \
    $'redis = redis://127.0.0.1:1\nredis = redis-sentinel://127.0.0.1:2/main\n'; do
    configure <<<"$lines"
    try run job --config "$T/rlock.conf" -- true
    exits 78
    matches "$ERR" "^rlock: $T/rlock.conf:[123]: " || return 1
  done
  configure <<<"${two}slots = 2"
  try run job --config "$T/rlock.conf" --slots 3 -- true
  exits 64
  matches "$ERR" '^rlock: --slots is for one --redis'
}

@test "a password file that is not there is the mistake of the line that names it" {
  echo 'password-file = nopw' | configure
  try acquire job --config "$T/rlock.conf"
  exits 78
  same "$ERR" "rlock: $T/rlock.conf:1: password file $T/nopw: No such file or directory"
  try acquire job --config "$T/rlock.conf" --password-file "$T/none"
  same "$ERR" "rlock: password file $T/none: No such file or directory"
}

@test "a password in the environment outranks a password file named by a configuration file" {
  cli CONFIG SET requirepass s3cret
  echo wrong >"$T/password"
  chmod 600 "$T/password"
  printf 'redis = %s\npassword-file = %s\n' "$HERE" "$T/password" | configure
  export RLOCK_CONFIG=$T/rlock.conf
  try acquire job
  exits 77
  RLOCK_PASSWORD=s3cret try acquire job
  exits 0
  RLOCK_PASSWORD=s3cret try acquire other --password-file "$T/password"
  exits 77
}

@test "a run inside a run finds the password in the URL of the configuration file again, and no other run does" {
  start_redis --requirepass s3cret
  mkdir "$T/.config"
  echo "redis = redis://:s3cret@127.0.0.1:$REDIS_PORT" >"$T/.config/rlock.conf"
  chmod 600 "$T/.config/rlock.conf"
  unset RLOCK_REDIS
  try run outer -- rlock run inner -- sh -c 'echo "$RLOCK_REDIS"; rlock status inner'
  exits 0
  contains "$OUT" "redis://127.0.0.1:$REDIS_PORT"$'\n'
  RLOCK_REDIS=redis://localhost:$REDIS_PORT try status outer
  exits 77
  RLOCK_REDIS=redis://127.0.0.1:$REDIS_PORT RLOCK_PASSWORD=wrong try status outer
  exits 77
}

@test "a password in a file that others can read causes a warning, which does not show it" {
  printf 'redis = redis://:s3cret@%s\n' "${HERE#redis://}" | configure
  cli CONFIG SET requirepass s3cret
  chmod 644 "$T/rlock.conf"
  try acquire job --config "$T/rlock.conf"
  exits 0
  matches "$ERR" "^rlock: warning: [^"$'\n'"]*$T/rlock.conf can be read by others[^"$'\n'"]*$"
  chmod 640 "$T/rlock.conf"
  try acquire second --config "$T/rlock.conf"
  contains "$ERR" "$T/rlock.conf can be read by others"
  chmod 600 "$T/rlock.conf"
  try acquire third --config "$T/rlock.conf"
  same "$ERR" ''
  printf 'redis = redis://:s3cret@127.0.0.1:x\n' | configure
  try status --config "$T/rlock.conf"
  exits 78
  [[ $ERR != *s3cret* ]] || fail "$ERR"
}

@test "a variable that makes no sense is a usage error that names it, unless it is outranked" {
  export RLOCK_REDIS=$HERE
  RLOCK_INSECURE=1 refuses 64 "RLOCK_INSECURE: '1' is neither yes nor no" status
  RLOCK_MAX_LEASE=soon refuses 64 RLOCK_MAX_LEASE status
  RLOCK_REDIS_TIMEOUT=soon try status --redis-timeout 2
  exits 0
}

@test "a bare rlock inside run finds the same Redis" {
  printf 'redis = %s\nprefix = file:\n' "$HERE" | configure
  try run --config "$T/rlock.conf" --key job -- rlock status "job"
  exits 0
  matches "$OUT" $'\njob +x '
}

@test "a file is looked for beside the configuration file that names it, wherever rlock is started" {
  cli CONFIG SET requirepass s3cret >/dev/null
  echo s3cret >"$T/secret"
  chmod 600 "$T/secret"
  printf 'redis = %s\npassword-file = secret\n' "$HERE" >"$T/relative.conf"
  cd /
  try status --config "$T/relative.conf"
  exits 0
  cd "$T"
  try status --config relative.conf
  exits 0
}

@test "a flag without a value and a comment of another kind are answered with what a file has" {
  echo quiet >"$T/conf"
  refuses 78 "'quiet' is neither \`option = value\` nor \`[subcommand]\`; write \`quiet = yes\`" status --config "$T/conf"
  echo '; red' >"$T/conf"
  refuses 78 'a comment begins with #' status --config "$T/conf"
  echo '--redis redis://db1' >"$T/conf"
  refuses 78 "'--redis ...' is neither \`option = value\` nor \`[subcommand]\`; write \`redis = URL\`" status --config "$T/conf"
  echo 'redis: redis://db1' >"$T/conf"
  refuses 78 "write \`redis = URL\`" status --config "$T/conf"
  echo '[redis]' >"$T/conf"
  refuses 78 "unknown section '[redis]'; write the option without brackets: \`redis = ...\`" status --config "$T/conf"
  echo 'password-file = ~/secret' >"$T/conf"
  refuses 78 'password-file: only a shell knows what ~ means; write the whole path' status --config "$T/conf"
}

@test "a byte order mark, which some editors write, is not taken for an option's name" {
  printf '\xEF\xBB\xBFredis = %s\n' "$HERE" >"$T/conf"
  try status --config "$T/conf"
  exits 0
  same "$ERR" ''
}
