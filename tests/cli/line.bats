# How the command line is parsed: bundles, values, contradictions, typing mistakes, and secrets in error messages.

load ../support/helpers

@test "short options bundle, and a value may follow at once" {
  hold job
  try run -qnE0 -kjob -- true
  exits 0
  same "$ERR" ''
  try run -qn -E 3 -k job -- true
  exits 3
  try run -k job -w0.1 -- true
  exits 75
  ((TOOK < 5000))
}

@test "what follows = is the value, whatever it is, and even if it is empty" {
  try acquire --key=a=b --note= --holder=--ttl --ttl=20
  exits 0
  try status a=b --json
  query '.[0].holders[0] | .holder == "--ttl" and .note == ""'
  refuses_too 64 --ttl acquire job --ttl= 20
}

refuses_too() { # as `refuses`, whatever is on Redis
  local want=$1 part=$2
  shift 2
  try "$@"
  exits "$want"
  same "$OUT" ''
  [[ $ERR == "rlock: "*"$part"* && $ERR != *$'\n'* ]] || fail "expected one line with ${part@Q}" "     got: ${ERR@Q}"
}

@test "an option that is given twice is refused by name" {
  refuses 64 '--key is given twice' acquire -k a -k b
  refuses 64 '--ttl is given twice' run -k a --ttl 5 --ttl 6 -- true
  refuses 64 '--ttl is given twice' run -k a -t5 --ttl=5 -- true
  refuses 64 '--nonblock is given twice' run -k a -nn -- true
}

@test "a flag takes no value but yes and no, as in a configuration file" {
  local value
  for value in true false on 1 ''; do
    refuses 64 "--nonblock: '$value' is neither yes nor no" acquire a --nonblock="$value"
  done
  printf 'nonblock = yes\n' >"$T/conf"
  hold a
  try acquire a --nonblock=yes
  exits 75
  start waiter rlock acquire a --config "$T/conf" --nonblock=no
  wait_for_text 'waiting for a' "$T/waiter.err"
}

@test "an option at the end that lacks its value is named, also at the end of a bundle" {
  refuses 64 '--wait needs a value, such as 30 (seconds) or 5m' acquire a --wait
  refuses 64 '--wait needs a value' acquire a -qw
  refuses 64 '--lines needs a value' log -n
}

@test "options that contradict each other are refused by name" {
  refuses 64 '--nonblock' run -k a -n -w 5 -- true
  contains "$ERR" --wait
  refuses 64 '--shared' run -k a -s -x -- true
  contains "$ERR" --exclusive
  refuses 64 '--slots' run -k a -s --slots 3 -- true
  refuses 64 '--quiet' run -k a -qv -- true
  refuses 64 '--force' release a --force --token 0123456789abcdef0123456789abcdef
  refuses 64 '--json' status --json --prometheus
  refuses 64 '--timeline' log --json --timeline
  refuses 64 '--timeline' log -n 5 --timeline
  refuses 64 '--once' run -k a --once 1 --once-per 1h -- true
  refuses 64 '--shared' run -k a --once 1 -s -- true
  refuses 64 '--slots' run -k a --once-per 1h --slots 2 -- true
  try run -k a -x --slots 1 -- true
  exits 0
}

@test "an option of a stronger source overrides one that contradicts it in a weaker source" {
  echo 'nonblock = yes' >"$T/conf"
  hold job
  try run --config "$T/conf" -k job -- true
  exits 75
  start waiter rlock run --config "$T/conf" -k job -w 20 -- true
  wait_for_text 'waiting for job' "$T/waiter.err"
  kill "$HOLDER"
  finish "$PID"
  exits 0
}

@test "a configuration file that contradicts itself is refused, 78" {
  printf 'shared = yes\nexclusive = yes\n' >"$T/conf"
  refuses 78 "$T/conf:2" run --config "$T/conf" -k job -- true
}

@test "options that need --force are refused without it" {
  local option
  for option in '--now' '--fence 7' '-w 3'; do
    # shellcheck disable=SC2086 # words
    refuses 64 'needs --force' release a --token 0123456789abcdef0123456789abcdef $option
  done
}

@test "--once-per: a period or a duration, and not with --once" {
  refuses 64 "--once-per: 'fortnight' is not one of minute, hour, day, week, month" run -k a --once-per fortnight -- true
  refuses 64 "did you mean week?" run -k a --once-per weekk -- true
  refuses 64 "'Day' is no period; did you mean day?" run -k a --once-per Day -- true
  refuses 64 "'1 ' is not a duration" run -k a --once-per '1 ' -- true
  refuses 64 "'1month' is no period; did you mean month?" run -k a --once-per 1month -- true
  refuses 64 '--once' run -k a --once-per week --once v42 -- true
  refuses 64 '--shared' run -k a --once-per day --shared -- true
  refuses 64 '--slots' run -k a --once-per day --slots 2 -- true
}

@test "--once has an ID of 1 to 128 bytes, --once-per ends at 30 d" {
  refuses 64 --once run -k a --once '' -- true
  refuses 64 --once run -k a --once "$(printf '%129s' '')" -- true
  refuses 64 --once-per run -k a --once-per 31d -- true
  refuses 64 --once-per run -k a --once-per 0 -- true
  refuses 64 --max-waiting run -k a --max-waiting -1 -- true
}

@test "a duration out of range is answered with the limit as a user writes it" {
  refuses 64 '--wait: 9999d is too long; it must be at most 3650d' run -k a -w 9999d -- true
  refuses 64 '--max-runtime: 9999d is too long; it must be at most 3650d' run -k a --max-runtime 9999d -- true
  refuses 64 '--since: 99999999999999999999 is too long; it must be at most 3650d' log --since 99999999999999999999
  refuses 64 '--ttl: 8d is too long; it must be at most 7d' acquire a --ttl 8d
  refuses 64 '--ttl: 499ms is too short; it must be at least 500ms' acquire a --ttl 499ms
  refuses 64 '--redis-timeout: 61 is too long; it must be at most 1m; ' acquire a --redis-timeout 61
  refuses 64 "--wait: '9999x' is not a duration such as " run -k a -w 9999x -- true
}

@test "a signal is a name in upper or lower case, or a number" {
  local signal
  for signal in TERM term SIGterm sigint Cont 15 64; do
    try run -k a --signal "$signal" -- true
    exits 0
  done
  cli FLUSHALL
  for signal in FOO 0 65 -1 SIG ''; do
    refuses 64 "--signal: '$signal' is not a signal; write a name such as TERM, INT or HUP, or a number" \
      run -k a --signal="$signal" -- true
  done
  refuses 64 'did you mean HUP?' acquire a --signal huup
}

@test "an option that is empty where it names a file is refused by name" {
  local option
  for option in config password-file cacert cert tls-key; do
    refuses 78 "--$option is empty" acquire a "--$option="
  done
  refuses 78 '--report is empty' run -k a --report '' -- true
  RLOCK_PASSWORD_FILE='' try acquire a # an empty variable is as one that is not set
  exits 0
}

@test "a bad name of a lock is blamed on what gave it" {
  refuses 64 "--key 'a{': braces " run -k 'a{' -- true
  refuses 64 "the key 'a{': braces " acquire 'a{'
  refuses 64 "the prefix 'a{' and --key 'a': braces " run --prefix 'a{' -k a -- true
  refuses 64 "--key '{a}': without a prefix a {tag} may not be all of it" run --prefix '' -k '{a}' -- true
  refuses 64 "the prefix '{' and the key 'a}': without a prefix" status --prefix '{' 'a}'
  refuses 64 'the key is empty' status ''
  refuses 64 '--key is empty' status -k ''
  RLOCK_KEY='{}' refuses 64 "RLOCK_KEY '{}': braces " release
}

@test "a mistyped subcommand, option or word is answered with the one that was meant" {
  try statsu
  exits 64
  contains "$ERR" "unknown subcommand 'statsu'; did you mean status?"
  contains "$ERR" 'Usage: '
  same "$(wc -l <"$T/err")" 2
  try --verson
  exits 64
  contains "$ERR" "unknown option '--verson'; did you mean --version?"
  refuses 64 'did you mean --nonblock?' run -k a --nonblok -- true
  refuses 64 'did you mean --wait?' run -k a --wiat 3 -- true
  refuses 64 'did you mean --ttl?' acquire a --tll=3
  refuses 64 'did you mean --ttl?' run a --tll 3 -- true
  try --tll 3 run a -- true
  exits 64
  contains "$ERR" 'did you mean --ttl?'
  refuses 64 'did you mean kill?' run -k a --on-lost kil -- true
  refuses 64 'did you mean json?' acquire a --output jsn
  refuses 64 'did you mean TERM?' run -k a --signal TREM -- true
  echo 'redis-timeot = 3' >"$T/conf"
  refuses 78 "unknown option 'redis-timeot'; did you mean redis-timeout?" run --config "$T/conf" -k a -- true
  printf '[rum]\n' >"$T/conf"
  refuses 78 'did you mean run?' run --config "$T/conf" -k a -- true
  refuses 64 "unknown option '--frobnicate'; see \`rlock acquire --help\`" acquire a --frobnicate
  [[ $ERR != *'did you mean'* ]]
}

@test "a line as flock takes it is answered with the one that rlock takes" {
  try backup tar -cf b.tar --password hunter2
  exits 64
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'backup'; to run a command write \`rlock run backup -- COMMAND\`"
  try -w 5 backup -- tar
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'backup'; to run a command write \`rlock run backup -- COMMAND\`"
  try held sleep 1
  same "$(head -1 "$T/err")" \
    "rlock: unknown subcommand 'held'; to run a command write \`rlock run held -- COMMAND\`; did you mean hold?"
  try lock a -- echo hi
  same "$(head -1 "$T/err")" \
    "rlock: unknown subcommand 'lock'; to run a command write \`rlock run a -- COMMAND\`; did you mean run?"
  try force job
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'force'; did you mean release --force?"
  try backup run -- true
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'backup'; write \`rlock run backup -- COMMAND\`"
  try backup status
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'backup'; write \`rlock status backup\`"
  refuses 64 'there is no --try; did you mean --wait?' run job --try 5s -- true
  refuses 64 'for N holders at a time write --slots N' run job -n=2 -- true
  refuses 64 'not one of minute, hour, day, week, month, or a duration such as 20h' run job --once-per year -- true
  refuses 127 "cd: command not found; for a shell, write -- sh -c '...'" run job -- cd /tmp
  refuses 127 '-w: command not found; options stand before the --' run job -- -w 5 true
  a_function() { :; }
  export -f a_function
  refuses 127 "a_function: command not found; for a function of the shell, write -- bash -c 'a_function \"\$@\"' a_function" \
    run job -- a_function word
  try stauts job
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'stauts'; did you mean status?"
  refuses 64 "; -n takes no number: write -w 5 to wait, or --slots 5 for 5 holders" run -n 5 backup -- true
  refuses 64 "; -n takes no number: write -w 3 to wait, or --slots 3 for 3 holders" run backup -n 3 -- true
  refuses 64 'there is no --nb; did you mean --nonblock?' run --nb backup -- true
  refuses 64 'there is no --max-time; did you mean --max-runtime?' run backup --max-time 5 -- true
  refuses 64 'there is no -a, since ps would show the password; use --password-file' run backup -a secret -- true
  refuses 64 'there is no -a; did you mean --all?' status -a
  refuses 64 "--once-per: 'daily' is no period; did you mean day?" run backup --once-per daily -- true
  refuses 64 'there is no -try; did you mean --wait?' run -try 3 backup -- true
  refuses 64 'there is no -name; did you mean --key?' run -name backup -- true
  refuses 64 'there is no -e; did you mean -x?' run -e backup -- true
  try -http-addr db1 run backup -- true
  exits 64
  same "$(head -1 "$T/err")" "rlock: unknown option '-http-addr'; see \`rlock --help\`"
  refuses 64 "unknown option '-http-addr'; see \`rlock run --help\`" run -http-addr=db1 backup -- true
  refuses 64 'unknown option' run -shell=false backup -- true
  try log -fh
  exits 0
  contains "$OUT" 'Usage: rlock log'
}

@test "names that other tools use are answered with those that rlock uses" {
  refuses 64 --password-file acquire a --password hunter2
  [[ $ERR != *hunter2* ]]
  refuses 64 --password-file acquire a --password=hunter2
  [[ $ERR != *hunter2* ]]
  refuses 64 --password-file run a --password hunter2 -- true
  [[ $ERR != *hunter2* ]]
  try --password hunter2 status
  exits 64
  contains "$ERR" --password-file
  [[ $ERR != *hunter2* ]]
  refuses 64 'write `--` before the command' run -k a ls -la
  refuses 64 'write `--` before the command' run a ls -la
  [[ $ERR != *--key* ]]
  refuses 64 'write `--` before the command, and the key before it' run ls -la
  refuses 64 "unexpected 'backup.sh': write \`--\` before the command" run backup backup.sh
  refuses 64 "unexpected 'b': the key is given by --key already" run -k a b -- true
  refuses 64 'write --wait D (for the lock) or --redis-timeout D (for an answer of Redis)' run -k a --timeout 1 -- true
  refuses 64 'write --wait D (for the lock) or --redis-timeout D (for an answer of Redis)' run a --timeout 1 -- true
  refuses 64 'write --wait D (for the lock) or --redis-timeout D (for an answer of Redis)' acquire a --timeout=1
  echo 'timeout = 3' >"$T/conf"
  refuses 78 'unknown option '\''timeout'\''; write `wait = D` (for the lock) or `redis-timeout = D` (for an answer of Redis)' acquire a --config "$T/conf"
  refuses 64 'write -k b instead of -k=b' run -k=b -- true
  refuses 64 "unknown option '--frobnicate'" run a --frobnicate b -- true
  refuses 64 'write -w 5 instead of -w=5' acquire a -qw=5
  refuses 64 '-h is --help; to name a server write --redis redis://db1' status -h db1
  refuses 64 'did you mean --watch?' status -w 2
  refuses 64 'there is no -timeout; write --wait D' run -timeout=30s a -- true # as consul lock has it
  refuses 64 "unexpected 'ls': acquire takes one key and no command; \`rlock run\` runs a command" acquire a -- ls
  refuses 64 "unexpected 'ls': acquire takes one key and no command; \`rlock run\` runs a command" acquire -k a ls
  refuses 64 "unexpected 'b': one key is enough" renew a b
  refuses 64 'write `--` before the command' run -k a grep -w
  refuses 64 "write \`-- sh -c '...'\`" run -k a -c 'echo hello'
  refuses 64 "write \`-- sh -c '...'\`" run a -c 'echo hello'
  refuses 64 "write \`-- sh -c '...'\`" run -k a -nc 'echo hello'
}

@test "a long option with one dash is answered with the one that has two" {
  refuses 64 "unknown option '-ttl'; did you mean --ttl?" run -k a -ttl 5 -- true
  refuses 64 "unknown option '-ttl'; did you mean --ttl?" acquire a -ttl=5
  refuses 64 "unknown option '-wait'; did you mean --wait?" acquire a -wait 5
  refuses 64 "unknown option '-key'; did you mean --key?" acquire -key a
  refuses 64 "unknown option '-note'; did you mean --note?" run a -note hi -- true
  refuses 64 "unknown option '-json'; did you mean --json?" status -json
  refuses 64 "unknown option '-force'; did you mean --force?" release a -force
}

@test "an option where the value of another is due is refused, and may be the value all the same" {
  refuses 64 '--once takes an ID, not -n; if that is the value, write --once=-n' run a --once -n -- true
  refuses 64 '--once takes an ID, not -v42; if that is the value, write --once=-v42' run a --once -v42 -- true
  refuses 64 "not --why not; if that is the value, write --note='--why not'" run a --note '--why not' -- true
  refuses 64 'not --password; if that is the value, write --note=--password=...' run a --note '--password=s3cret' -- true
  refuses 64 '--note takes a TEXT, not --wait; ' run a --note --wait 5 -- true
  refuses 64 '--max-waiting takes an N, not -q; ' run a --max-waiting -q -- true
  refuses 64 '--on-lost takes kill|warn, not --wait; ' run a --on-lost --wait 5 -- true
  refuses 64 '--key takes a K, not -n; ' run -nk -n -- true
  refuses 64 '--note takes a TEXT, not --password; ' --note --password=hunter2 acquire a
  [[ $ERR != *hunter2* ]]
  refuses 64 "--wait: '-1' is not a duration" acquire a --wait -1
  try run a --once=-n --note=--wait -- true
  exits 0
  same "$(rlock status a --json | jq -r '.[0].last.note')" --wait
}

@test "a duration or a time in two words is refused, since the second would be a lock" {
  refuses 64 '--for 1 h: write 1h (or -k h, if that is the lock)' hold a --for 1 h
  refuses 64 '--for 1 h: write 1h ' hold a --for=1 h
  refuses 64 '--for 1h 30m: write 1h30m ' hold a --for 1h 30m
  refuses 64 '--ttl 5 m: write 5m ' run a --ttl 5 m -- true
  refuses 64 '--wait 10 minutes: write 10m ' run --wait 10 minutes a -- true
  refuses 64 '--wait 500 ms: write 500ms ' run -w 500 ms a -- true
  refuses 64 '--once-per 20 hours: write 20h ' run a --once-per 20 hours -- true
  refuses 64 '--since 2 d: write 2d ' log --since 2 d
  refuses 64 "--since 2026-11-22 08:00: write '2026-11-22 08:00', in quotes" log --since 2026-11-22 08:00
  refuses 64 "--until tomorrow 08:00: write 'tomorrow 08:00', in quotes" hold a --until tomorrow 08:00
  refuses 64 "--until 08:00 mon: write 'mon 08:00', in quotes (or -k mon, if that is a lock)" hold a --until 08:00 mon
  refuses 64 "--until: 'tomorrow' lacks the time of day; write 'tomorrow 08:00'" hold a --until tomorrow
  try run -w 10 -k h -- true
  exits 0
}

@test "what consul, flock and a shell would take is answered with what rlock has" {
  refuses 64 'there is no -child-exit-code: the exit status is always' run -child-exit-code -k a -- true
  refuses 64 'there is no --child-exit-code: the exit status is always' run --child-exit-code -k a -- true
  refuses 64 'there is no --endpoints; did you mean --redis?' acquire a --endpoints x
  refuses 64 "--hold needs --force; to keep a lock free without breaking it write \`rlock hold KEY --for D\`" release a --hold 1h
  refuses 64 'there is no -monitor-retry: a renewal that fails is tried again' run -monitor-retry=3 -k a -- true
  try lock a true
  contains "$ERR" "to run a command write \`rlock run a -- COMMAND\`; did you mean run?"
  try evict a
  contains "$ERR" "unknown subcommand 'evict'; did you mean release --force?"
  refuses 127 'PASSWORD=...: command not found; to set a variable write -- env PASSWORD=... COMMAND' \
    run a -- PASSWORD=secret true
  printf 'exit 0' >"$T/local.sh"
  (cd "$T" && refuses 127 'local.sh: command not found; did you mean ./local.sh?' run a -- local.sh)
  refuses 126 '/: is a directory' run a -- /
  refuses 64 'no key; write it after the subcommand' hold
  refuses 64 'the name of each lock, not a pattern, since it also holds locks that nobody has used yet' hold 'a*' --for 1h
}

@test "a command without -- before it is answered as such, whatever its options are called" {
  refuses 64 "unexpected 'pg_dump': write \`--\` before the command" run backup -w 10m pg_dump -h db
  refuses 64 "unexpected 'git': write \`--\` before the command" run backup git --version
  refuses 64 "unexpected 'ls': write \`--\` before the command" run -k backup ls --help
  try run backup --help
  exits 0
}

@test "a duration in other words is answered with the one that was meant" {
  refuses 64 "--for: '10min' is not a duration such as 30, 1.5s, 250ms, 1h30m or 7d; did you mean 10m?" hold a --for 10min
  refuses 64 'did you mean 2h?' acquire a --wait 2hours
  refuses 64 'did you mean 30s?' acquire a --wait 30sec
  refuses 64 'did you mean 5m?' acquire a --ttl '5 Mins'
  refuses 64 'did you mean 1h30m?' acquire a --ttl 1h30
  refuses 64 'did you mean 1d?' log --since 1day
  refuses 64 'did you mean 14d?' log --since 2weeks
  refuses 64 "'1.5w' is neither a time" log --since 1.5w
  [[ $ERR != *'did you mean'* ]]
  refuses 64 'not a duration' acquire a --ttl 10mib
  [[ $ERR != *'did you mean'* ]]
}

@test "a range and a time that rlock does not take are answered with what it takes" {
  local range
  for range in 10m-1h 10m:1h 10m...1h '10m .. 1h'; do
    refuses 64 "--backoff: '$range' is not D..MAX; write 10m..1h" run a --backoff "$range" -- true
  done
  refuses 64 "--until: '3am' is not a time such as 08:00, 15:30, 'tomorrow 08:00', " hold a --until 3am
  refuses 64 '; for a time from now write --for 10m' hold a --until +10m
  refuses 64 '; for a time from now write --for 10m' hold a --until 10min
  refuses 64 "'08:00' is a time and not a duration; write --until '08:00'" hold a --for 08:00
  refuses 64 "--since: '3am' is neither a time such as 08:00, 15:30, yesterday, " log --since 3am
  refuses 64 "--since: '22.11.2026' is neither a time such as " log --since 22.11.2026
}

@test "what users of other tools write for an option is answered with ours" {
  refuses 64 'there is no --lock; did you mean --key?' run --lock a -- true
  refuses 64 'there is no --no-wait; did you mean --nonblock?' run a --no-wait -- true
  refuses 64 'there is no --exit-code; did you mean --conflict-exit-code?' run a --exit-code 0 -- true
  refuses 64 'there is no --daily; did you mean --once-per day?' run a --daily -- true
  refuses 64 'there is no --reason; did you mean --note?' hold a --for 1h --reason x
  refuses 64 'there is no --max-wait; did you mean --wait?' run a --max-wait 5 -- true
  refuses 64 'there is no --format; did you mean --json?' status --format json
  refuses 64 'there is no --format; did you mean --output?' acquire a --format json
  refuses 64 'there is no --auth, since ps would show it' status --auth s3cret
  refuses 64 "unexpected '1795215005718450': did you mean --fence 1795215005718450?" release a 1795215005718450 --force
  refuses 64 "unknown option '--foo'; if it is for 'a', write \`--\` before the command, and the key before it" run a --foo
  refuses 64 'there is no --host; did you mean --redis?' status --host=db1
  refuses 64 'there is no --tail; did you mean --lines?' log --tail 5
  refuses 64 "unknown option '-20'; write -n 20" log -20
  refuses 64 'to name a server write --redis redis://HOST:PORT' status -p 6380
  refuses 64 'to give a lock up write `rlock release KEY`, to name a server write --redis redis://HOST:PORT' run a -u
  refuses 64 'did you mean --force?' release a -f
  refuses 64 ', or --max-runtime D (for the command)' run a --timeout 1 -- true
  refuses 64 'to name one write --redis redis://HOST:PORT' check redis://db1
  refuses 64 'no scheme; write redis://db1:6380' status -r db1:6380
  refuses 64 'no scheme; write redis://127.0.0.1:6380' status -r 6380
  refuses 64 'no scheme; write redis://redis:6380' status -r redis:6380
  refuses 64 'no scheme; write rediss://db1:6380' status -r rediss:/db1:6380
  refuses 64 'no scheme; write redis://db1:6380' status -r redis//db1:6380
  refuses 64 'no scheme; write redis://db1:6380' status -r http//db1:6380
  refuses 64 'no scheme; write redis://HOST' status -r redis:6380/0
  refuses 64 'no scheme; write unix:///run/redis.sock' status -r /run/redis.sock
  refuses 64 'no scheme; write unix:///run/redis.sock' status -r unix:/run/redis.sock
  refuses 64 "unknown scheme 'valkey'; write redis://" status -r valkey://db1
  refuses 64 "unknown query parameter 'db'; write /DB behind the host" status -r 'redis://db1?db=1'
  refuses 64 'no host; write unix:///PATH for a socket' status -r redis:///run/redis.sock
  refuses 64 "bad host or port '::1:7701'; write HOST[:PORT], with an IPv6 address in brackets" status -r redis://::1:7701
  refuses 64 'one host only; each independent server has a URL of its own: repeat --redis' status -r redis://a,redis://b
  refuses 64 'each independent server has a URL of its own: repeat --redis' status -r 'redis://a redis://b'
  refuses 64 'there is no --tls; write --redis rediss://HOST:PORT' status --tls
  refuses 64 'there is no --ssl; write --redis rediss://HOST:PORT' --ssl status
  refuses 64 'there is no --tls-cert; did you mean --cert?' status --tls-cert client.pem
  refuses 64 'there is no --tls-ca; did you mean --cacert?' status --tls-ca=ca.pem
  refuses 64 'there is no --stop; did you mean --end?' hold a --stop
  refuses 64 'there is no --release; did you mean --end?' hold a --release
  try --release a
  [[ $ERR != *--end* ]] || fail "$ERR"
  refuses 64 'there is no --list; `rlock status` lists the locks that are on hold, too' hold --list
  refuses 64 'there is no --db; write --redis redis://HOST:PORT/DB' status --db 3
  refuses 64 "'-1' is not a duration; to wait for ever leave it out" run a -w -1 -- true
  refuses 64 'to wait for ever leave it out' run a --wait forever -- true
  refuses 64 'did you mean --ttl 10m?' acquire a 10m
  refuses 64 'no key; write it before the `--`' run -- true
  try forget a
  exits 64
  contains "$ERR" 'Redis forgets a lock by itself, 30 days after its last run'
  try unhold a
  contains "$ERR" 'did you mean hold --end?'
}

@test "--once with a period, which would be done once and never again, is answered with --once-per" {
  refuses 64 "--once: 'daily' would be done once and never again; write --once-per day" run a --once daily -- true
  refuses 64 'write --once-per week' run a --once week -- true
  refuses 64 'write --once-per PERIOD' run a --once per day -- true
}

@test "a note of several words without quotes is refused after a key, since the others would be locks" {
  refuses 64 "--note disk swap: write 'disk swap', in quotes (or swap before --note, if it is a lock)" \
    hold a --for 1h --note disk swap
  refuses 64 "write 'release 42', in quotes" run -k a --note=release 42 -- true
  try hold --for 1h --note disk a b
  exits 0
  same "$OUT" "$(grep -E '^[ab]: on hold until .* \(disk\)$' "$T/out")"
}

@test "a long dash, as word processors make it of hyphens, is refused" {
  refuses 64 'write hyphens instead of the long dash: --json' status —json
  refuses 64 'write hyphens instead of the long dash: --ttl' run a —ttl=5 -- true
  refuses 64 'write hyphens instead of the long dash: -n' run a –n -- true
  refuses 64 'write hyphens instead of the long dash: --' run a — true
}

@test "a token without --token is not shown" {
  refuses 64 'a token is given by --token' release a 0123456789abcdef0123456789abcdef
  [[ $ERR != *0123456789abcdef* ]]
}

@test "an option of another subcommand, and one without its value, are named" {
  refuses 64 '--slots is not an option of status' status --slots 3
  refuses 64 '--timeline is not an option of status; it is one of log' status --timeline
  refuses 64 '--ttl is not an option of release; it is one of run, acquire, renew' release a --ttl 5
  refuses 64 '--json is not an option of acquire; write --output json' acquire a --json
  refuses 64 '--fence is not an option of status' status a --fence
  refuses 64 '-f is not an option of release; did you mean --force?' release a -f
  refuses 64 '-f is not an option of run; it is one of log' run a -f -- true
  refuses 64 '-n is not an option of status; it is one of run, acquire, log' status -n
  refuses 64 '--end is not an option of release; to end a hold write `rlock hold KEY --end`' release a --end
  refuses 64 '--until is not an option of log; log has --since, and --json,' log --until 08:00
  refuses 64 'there is no --failures; did you mean --failed?' log --failures
  refuses 64 'there is no --limit; did you mean --lines?' log --limit 5
  refuses 64 '--ttl needs a value' acquire a -nt
  refuses 64 '--key needs a value' run --key
}

@test "-n means --nonblock for run and acquire, and the number of lines for log" {
  refuses 64 --lines log -n many
  refuses 64 --lines log -nmany
  refuses 64 'needs a value' log -n
  refuses 64 '-n is --lines N for log, and --nonblock for run and acquire' -n log
  try -n 5 log
  exits 0
  hold job
  try run -n -k job -- true
  exits 75
  try -n run job -- true
  exits 75
}

@test "a key may be named like a subcommand or begin with =, and an option may have such a value" {
  try -k status run -- true
  exits 0
  try run --note log --holder '=me' -- -- true
  exits 64
  try run -k log --note=-k=b -- true
  exits 0
  try acquire -k =b
  exits 0
  exists rlock:=b
}

@test "what other tools call a subcommand is answered with what rlock calls it" {
  local said meant
  for said in ls:status unlock:release 'break:release --force' version:--version; do
    meant=${said#*:}
    try "${said%:*}"
    exits 64
    contains "$ERR" "did you mean $meant?"
  done
}

@test "help SUBCOMMAND is SUBCOMMAND --help" {
  local sub
  for sub in run acquire renew release status log check; do
    same "$(rlock help "$sub")" "$(rlock "$sub" --help)"
  done
  same "$(rlock help)" "$(rlock --help)"
  refuses 64 "unexpected 'more': help explains one subcommand" help run more
  same "$(rlock help help)" "$(rlock --help)"
  try help rnu
  exits 64
  contains "$ERR" 'did you mean run?'
}

@test "help for a subcommand that rlock does not have says what it is called here" {
  local line
  for line in 'break --help' 'break -h' '--help break' '-h break' 'help break' 'help break --help'; do
    # shellcheck disable=SC2086 # words
    try $line
    exits 64
    same "$(head -1 "$T/err")" "rlock: unknown subcommand 'break'; did you mean release --force?"
  done
  try help backup
  same "$(head -1 "$T/err")" "rlock: unknown subcommand 'backup'"
}

@test "a line whose subcommand is after -- says so" {
  try -- run -k a
  exits 64
  contains "$ERR" 'rlock: no subcommand before `--`'
  try -k a -- true
  exits 64
  contains "$ERR" 'rlock: no subcommand before `--`'
}

@test "help says what an option means for its subcommand" {
  help_of() { rlock "$1" --help | tr -s ' \n' ' '; }
  contains "$(help_of acquire)" 'With --hold-pid: signal to PID if the lease is lost [TERM]'
  [[ $(help_of run) != *hold-pid* ]]
  contains "$(help_of run)" 'Redis must answer when rlock starts'
  contains "$(help_of acquire)" 'rlock acquire migration --hold-pid $$ --output shell || echo exit $?)"'
  contains "$(help_of renew)" 'How long the lease lasts from now on; it is never shortened [RLOCK_TTL_MS of this lock, or 30s]'
  contains "$(help_of release)" 'With --force: wait for D at most [for ever], then exit with 75; the holder must still give it up'
  [[ $(help_of check) != *'instead of a table'* ]]
  contains "$(rlock __complete renew --)" $'--ttl=\tHow long the lease lasts from now on; it is never shortened [RLOCK_TTL_MS of this lock, or 30s]'
}

@test "help explains the words in what status and log print" {
  local text word
  text=$(rlock status --help | sed -n '/^Columns:/,/^  PID/p')
  for word in x r 2/3 dead cooling hold foreign free; do
    contains "$(<"$BATS_TEST_DIRNAME/../../man/rlock.1")" ".It Cm $word"
    [[ $text =~ [[:space:]]${word}(:|$'\n') ]] || fail "$word: $text"
  done
  for word in HELD LEASE WAITING LAST FENCE; do contains "$(rlock status --help)" $'\n'"  $word "; done
  text=$(rlock log --help | sed -n '/^END:/,/^Exit/p')
  for word in '0,' 'SIGKILL,' timeout interrupted evicted replaced lost died released ended 'on hold' 'hold over'; do
    contains "$text" $'\n'"  $word"
  done
}

@test "help has 80 columns at most, an example and the environment of each subcommand" {
  local sub
  for sub in run acquire renew release hold status log check; do
    try "$sub" --help
    exits 0
    [[ ! $OUT =~ [^$'\n']{81} ]] || fail "too wide: ${BASH_REMATCH[0]}"
    contains "$OUT" $'\nExample:\n'
    contains "$OUT" $'\nEnvironment:\n'
    contains "$OUT" RLOCK_REDIS
  done
  for sub in status log check; do # where one comes for the output
    [[ $(rlock "$sub" --help) == *$'\nOutput:\n'*$'\nRedis:\n'* ]] || fail "$sub"
  done
  try --help
  [[ ! $OUT =~ [^$'\n']{81} ]]
}

@test "a URL where the key belongs is refused, and so is one without a scheme, and neither shows a password" {
  local words
  for words in 'run % -- true' 'acquire %' 'status %' 'log job %' 'hold % --for 1m' 'release %'; do
    # shellcheck disable=SC2086 # words
    refuses 64 "unexpected 'redis://app:***@db:6379': to name a server write --redis URL" \
      ${words/'%'/redis://app:s3cret@db:6379}
  done
  refuses 64 '***@db: no scheme; write redis://HOST' status -r s3cret@db
  RLOCK_REDIS='app:s3cret @db1:6379' refuses 64 'app:***: no scheme; write redis://HOST' status # no URL
  RLOCK_REDIS='redis:::s3cret/x @db1' refuses 64 'redis:***: no scheme; write redis://HOST' status
  try acquire --key redis://app@db
  exits 0
}

@test "a password is shown by no message about the line, the environment or a file" {
  local word
  for word in --password=s3cret redis://me:s3cret@h:x redis://:s3cret 'redis://:my s3cret@h' \
    'redis://h:1?password=s3cret' 'unix:///s?password=s3cret' 'unix:///s?db=1&password=s3cret' 'unix://me:s3cret@/s' \
    'redis://me:s3cret' 'redis://h/0?pwd=s3cret' 'redis://h/0?db=0&key=s3cret'; do
    for words in "acquire a $word" "run -k a $word" "run -k a -u $word -- true" "acquire a --redis $word" "$word"; do
      # shellcheck disable=SC2086 # words
      try $words
      ((STATUS == 64 || STATUS == 69)) || fail "$STATUS of $words: $ERR"
      [[ $ERR != *s3cret* ]] || fail "$words: $ERR"
    done
    RLOCK_REDIS=$word try acquire a
    [[ $ERR != *s3cret* ]] || fail "RLOCK_REDIS=$word: $ERR"
    REDIS_URL=$word RLOCK_REDIS='' try acquire a
    [[ $ERR != *s3cret* ]] || fail "REDIS_URL=$word: $ERR"
    echo "redis = $word" >"$T/conf"
    RLOCK_REDIS='' try acquire a --config "$T/conf"
    [[ $ERR != *s3cret* ]] || fail "redis = $word: $ERR"
  done
}
