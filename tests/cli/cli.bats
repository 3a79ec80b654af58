# The command line: help, usage errors, values at and beyond their limits, and which of several settings counts.

load ../support/helpers

# bad_for_run OPTION VALUE...: each value is refused, OPTION is named, and the command is not started
bad_for_run() {
  local option=$1 value
  shift
  for value; do refuses 64 "$option" run --key job "$option=$value" -- touch "$T/ran"; done
  [[ ! -e $T/ran ]]
}

bad_for_acquire() {
  local option=$1 value
  shift
  for value; do refuses 64 "$option" acquire --key job "$option=$value"; done
}

NOT_DURATIONS=('' ' ' - . s ms -1 -1s -0.5 +-1 1w 1y 1S 1e '1,5' 1.2.3 1s2 '1 s' ' 1' '1 ' abc nan NaN inf -inf 0x10
  99999999999999999999 99999999999d $'1\n' $'\e[31m' $'\xff' $'1\xc3s')

@test "rlock alone prints the usage on stderr and exits 64" {
  try
  exits 64
  same "$OUT" ''
  contains "$ERR" 'rlock run'
}

@test "an unknown subcommand or option is named: 64" {
  try frobnicate
  exits 64
  same "$OUT" ''
  contains "$ERR" frobnicate
  refuses 64 --frobnicate run --key job --frobnicate -- true
  refuses 64 --frobnicate acquire --key job --frobnicate
  refuses 64 surplus acquire job surplus
}

@test "help says what is easily taken for something else" {
  local -A words=([status]='counted from 0' [log]='or were evicted' [check]='Print only what is not ok')
  for sub in "${!words[@]}"; do
    try "$sub" --help
    contains "$(tr -s ' \n' ' ' <"$T/out")" "${words[$sub]}"
  done
}

@test "help goes to stdout and names every subcommand and its options" {
  local sub option
  try --help
  exits 0
  same "$ERR" ''
  for sub in run acquire renew release status; do contains "$OUT" "$sub"; done
  for sub in run acquire renew release status; do
    try "$sub" --help
    exits 0
    same "$ERR" ''
    for option in --redis --prefix --redis-timeout --quiet --verbose; do contains "$OUT" "$option"; done
  done
  try run --help
  for option in --key --ttl --nonblock --wait --conflict-exit-code --holder --note; do contains "$OUT" "$option"; done
}

@test "the version goes to stdout, and those of the libraries that are linked in" {
  try --version
  exits 0
  matches "$OUT" $'^rlock [0-9.]+\nOpenSSL [0-9.]+[^\n]*\nhiredis [0-9.]+$'
  same "$ERR" ''
}

@test "run without --, without a command or without a key is a usage error" {
  refuses 64 -- run --key job
  refuses 64 -- run --key job --
  refuses 64 -- run --key job touch "$T/ran"
  refuses 64 'no key' run -- touch "$T/ran"
  [[ ! -e $T/ran ]]
}

@test "run -c is refused, and the error says what to write instead" {
  refuses 64 "write \`-- sh -c '...'\`" run --key job -c 'echo hello'
}

@test "every subcommand takes the key as an argument, run before its --, and requires one" {
  try run job -- sh -c 'echo "$RLOCK_KEY"'
  exits 0
  same "$OUT" job
  try run -w 5 job --ttl 9s -- sh -c 'echo "$RLOCK_KEY $RLOCK_TTL_MS"'
  exits 0
  same "$OUT" 'job 9000'
  cli FLUSHALL
  refuses 64 "unexpected 'job': the key is given by --key already" run job --key job -- touch "$T/ran"
  refuses 64 "unexpected 'b': only the key and options may stand between run and \`--\`" run a b -- touch "$T/ran"
  [[ ! -e $T/ran ]]
  try acquire job
  exits 0
  try status job
  exits 0
  RLOCK_TOKEN=$(<"$T/out") try renew job
  cli FLUSHALL
  refuses 64 'no key' acquire
  refuses 64 'no key, and no RLOCK_KEY; write it after the subcommand' renew --token 0123456789abcdef0123456789abcdef
  refuses 64 'no key, and no RLOCK_KEY' release --token 0123456789abcdef0123456789abcdef
}

@test "an option without its value is a usage error that names it" {
  refuses 64 --key acquire --key
  refuses 64 --ttl acquire job --ttl
  refuses 64 --wait run --key job --wait -- true
}

@test "durations are numbers of seconds or have a unit, and may be fractions" {
  local value ms left
  while read -r value ms; do
    try acquire "lasts-$value" --ttl "$value"
    exits 0
    left=$(cli PTTL "rlock:lasts-$value")
    ((left <= ms && left > ms - 10000)) || fail "--ttl $value left $left ms"
  done <<END
20 20000
1.5 1500
500ms 500
0.5s 500
1500.0ms 1500
2m 120000
1h 3600000
1.5h 5400000
7d 604800000
END
}

@test "a bad duration is a usage error that names its option" {
  local option
  bad_for_run --ttl "${NOT_DURATIONS[@]}"
  for option in --wait --redis-timeout --renew-every --kill-after; do
    bad_for_run "$option" '' -1 1w nan 99999999999d $'\xff'
  done
}

@test "a bad duration in the environment is a usage error that names the variable" {
  local value
  for value in soon -1 99999999999d; do
    RLOCK_REDIS_TIMEOUT=$value refuses 64 RLOCK_REDIS_TIMEOUT acquire job
  done
}

@test "a lease shorter than 500 ms or longer than 7 d is refused" {
  bad_for_acquire --ttl 0 499ms 0.499 604801 8d 7.01d
  bad_for_run --ttl 0 499ms 8d
}

@test "--redis-timeout over 60 s is refused, and the error points to what was probably meant" {
  refuses 64 --max-runtime run --key job --redis-timeout 61s -- true
  refuses 64 --wait run --key job --redis-timeout 61s -- true
  try acquire job --redis-timeout 60s
  exits 0
}

@test "a variable that is named like an option but is not read is told" {
  RLOCK_TTL=5s RLOCK_KEY=a RLOCK_TOKEN=b RLOCK_FENCE=3 RLOCK_OTHER=x try run job -- true
  exits 0
  same "$ERR" 'rlock: warning: RLOCK_TTL is not read; write --ttl, or a line in a configuration file'
  RLOCK_TIMEOUT=5s try run job -- true
  exits 0
  same "$ERR" 'rlock: warning: RLOCK_TIMEOUT is not read; write RLOCK_REDIS_TIMEOUT (for an answer of Redis)'
  RLOCK_REDS=redis://db1 try run job -- true
  exits 0
  same "$ERR" 'rlock: warning: RLOCK_REDS is not read; did you mean RLOCK_REDIS?'
  RLOCK_URL=redis://db1 try run job -- true
  same "$ERR" 'rlock: warning: RLOCK_URL is not read; write RLOCK_REDIS'
  RLOCK_TIMEOUT=1 RLOCK_URL=x try status
  matches "$ERR" '^rlock: warning: RLOCK_(TIMEOUT|URL) is not read; write .*; RLOCK_(TIMEOUT|URL) is not read; write [^;]*$'
  RLOCK_REDIS_TIMEOUT=5s try run job -- rlock renew
  exits 0
  same "$ERR" ''
}

@test "a bare number of an hour or more is a lease that was perhaps meant in milliseconds: a warning says so" {
  try acquire a --ttl 30000
  exits 0
  same "$ERR" 'rlock: warning: --ttl: 30000 is 8h20m; for milliseconds write 30000ms'
  try acquire b --ttl 3600
  contains "$ERR" '3600 is 1h00m; for milliseconds write 3600ms'
  printf 'ttl = 7200.5\n' >"$T/conf"
  try acquire c --config "$T/conf"
  contains "$ERR" "$T/conf:1: ttl: 7200.5 is 2h00m; "
  try acquire d --config "$T/conf" --ttl 3599
  same "$ERR" ''
  try acquire e --ttl 2h
  same "$ERR" ''
  cli FLUSHALL
  refuses 64 'at most 7d; for milliseconds write 3600000ms' acquire f --ttl 3600000
}

@test "-E takes 0 to 255" {
  bad_for_run --conflict-exit-code '' -1 256 1.5 abc 0x10 '1 ' 99999999999999999999 $'\xff'
  hold job
  try run --key job -n -E 255 -- true
  exits 255
  try run --key job -n -E 0 -- true
  exits 0
}

@test "a lock's name is 1 to 512 bytes without NUL, newline or stray braces" {
  local name
  for name in '' "$(printf '%513s' '' | tr ' ' x)" $'a\nb' $'\n' '{' '}' '{}' 'a{' 'a}b' '}{' '{a}{b}' '{{a}}' \
    '{a}:queue' 'x{a}:waiters' '{a}:meta'; do
    refuses 64 --key acquire --key "$name"
    refuses 64 --key run --key "$name" -- touch "$T/ran"
  done
  [[ ! -e $T/ran ]]
}

@test "any other bytes in a lock's name are taken literally" {
  local name
  for name in "$(printf '%512s' '' | tr ' ' x)" 'a b' '*' $'\e[31m' $'\t\r\x01\x7f' $'\xff\xfe' 'ключ' 'x{tag}y' '{tag}' --ttl \
    "'quoted' \"\$(touch x)\" \\n" a:queue; do
    try acquire --key="$name"
    exits 0
    same "$(cli EXISTS "rlock:$name")" 1
  done
}

@test "holder and note take any bytes" {
  local text
  for text in '' "$(printf '%300s' '' | tr ' ' x)" $'\e[31m\n\t"' $'\xff\xc3' --ttl 'a b'; do
    try acquire "noted by ${text@Q}" --holder="$text" --note="$text"
    exits 0
    exists "rlock:noted by ${text@Q}"
  done
}

@test "a bad URL is a usage error that names it" {
  local url
  for url in redis redis: http://127.0.0.1 127.0.0.1:6379 redis://127.0.0.1:99999 redis://127.0.0.1:-1 \
    redis://127.0.0.1:x redis://127.0.0.1/x redis://127.0.0.1/-1 redis://127.0.0.1/0/1 redis://127.0.0.1/%zz \
    redis://127.0.0.1/99999999999999999999 'redis://127.0.0.1/0?colour=red' 'redis://127.0.0.1 /0' 'redis://[::1' \
    'redis://[::1]x' redis://%00/ unix:// 'unix:///tmp/s?colour=red' 'unix:///tmp/s?db=x'; do
    refuses 64 "${url/=red/=***}" --redis "$url" acquire job # what it is worth may be a password
  done
  refuses 64 --redis --redis '' acquire job
  RLOCK_REDIS=http://127.0.0.1 refuses 64 http://127.0.0.1 acquire job
  unset RLOCK_REDIS
  REDIS_URL=http://127.0.0.1 refuses 64 http://127.0.0.1 acquire job
}

@test "an unknown scheme of a URL is answered with those that rlock knows" {
  refuses 64 "unknown scheme 'ftp'; it must be unix, redis, rediss, redis-sentinel, rediss-sentinel, redis-cluster or rediss-cluster" \
    --redis ftp://127.0.0.1 acquire job
}

@test "a comment behind a value in the environment is refused, since it would be a part of the value" {
  RLOCK_REDIS="$RLOCK_REDIS # main" refuses 64 'RLOCK_REDIS: a comment needs a line of its own' acquire job
  RLOCK_PREFIX='a: #main' refuses 64 'RLOCK_PREFIX: a comment needs a line of its own' acquire job
}

@test "a password in a bad URL is masked" {
  refuses 64 127.0.0.1:99999 --redis redis://me:s3cret@127.0.0.1:99999 acquire job
  [[ $ERR != *s3cret* ]] || fail "$ERR"
  refuses 64 127.0.0.1 --redis 'redis://:s3cret@127.0.0.1/0?x=1' acquire job
  [[ $ERR != *s3cret* ]] || fail "$ERR"
}

@test "options of every subcommand may come before or after its name" {
  local url=$RLOCK_REDIS
  unset RLOCK_REDIS
  try --redis "$url" --prefix a: acquire job
  exits 0
  try acquire job --prefix b: --redis "$url"
  exits 0
  try -r "$url" acquire job --prefix c: -n
  exits 0
  same "$(cli EXISTS a:job b:job c:job)" 3
}

@test "the command line outranks the environment, which outranks the default" {
  local here=$RLOCK_REDIS nowhere=redis://127.0.0.1:1
  RLOCK_REDIS=$nowhere try acquire one --redis "$here"
  exits 0
  REDIS_URL=$nowhere try acquire two
  exits 0
  unset RLOCK_REDIS
  REDIS_URL=$here try acquire three
  exits 0
  REDIS_URL=$nowhere try acquire four
  exits 69
  contains "$ERR" 127.0.0.1:1
  RLOCK_REDIS=$here RLOCK_PREFIX=env: try acquire five
  exits 0
  RLOCK_REDIS=$here RLOCK_PREFIX=env: try acquire six --prefix cmd:
  exits 0
  same "$(cli EXISTS rlock:one rlock:two rlock:three env:five cmd:six)" 5
}

@test "the prefix may be empty" {
  try acquire job --prefix ''
  exits 0
  same "$(cli TYPE job)" hash
}

@test "--quiet prints errors only, --verbose prints every step, both on stderr" {
  hold job
  try run --key job -n --quiet -- true
  exits 75
  same "$OUT$ERR" ''
  try --quiet run --key 'a}' -- true
  exits 64
  contains "$ERR" --key
  try run --key other --verbose -- echo hello
  exits 0
  same "$OUT" hello
  matches "$ERR" '^rlock: '
}
