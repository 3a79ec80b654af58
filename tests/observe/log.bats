# rlock log: what happened to a lock, for those on call; and the metrics that alert them.

load ../support/helpers
load ../support/servers
load ../support/supervision

@test "every run leaves a line: who, when, how long, and how it ended" {
  try run --key job --note weekly --holder deploy@web3 -- sh -c 'exit 3'
  try run --key job -- true
  try log job
  exits 0
  matches "$OUT" $'^KEY +STARTED +WAITED +HELD +END +HOLDER +COMMAND +NOTE *\n'
  matches "$OUT" $'\njob +20[0-9-]{8} [0-9:]{8} +[0-9]+ms +[0-9.]+m?s +3 +deploy@web3 +sh -c exit 3 +weekly\n'
  matches "$OUT" $'\njob +20[0-9-]{8} [0-9:]{8} +[0-9]+ms +[0-9.]+m?s +0 +[^ ]+ +true +-$'
  same "$(wc -l <"$T/out")" 3
}

@test "--json has every fact of a run" {
  try run --key job --note weekly -- sh -c 'exit 3'
  try log job --json
  exits 0
  query --arg user "$(id -un)" --arg host "$(uname -n)" 'length == 1 and (.[0] |
    .key == "job" and .holder == "\($user)@\($host)" and .host == $host and .user == $user and .pid > 1 and
    .command == "sh -c exit 3" and .note == "weekly" and .mode == "exclusive" and .slots == null and
    .end == "exited" and .exit_status == 3 and .signal == null and .by == null and
    .fence > 0 and .fence < 9007199254740992 and .held_ms >= 0 and .held_ms < 20000 and .waited_ms < 20000)'
  query '.[0] | [.acquired_at, .ended_at] | all(test("^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z$"))'
}

@test "other endings have names: released, evicted, a signal, died" {
  try acquire given
  try release given --token "$OUT"
  try acquire taken
  try release taken --force
  try run --key hit -- sh -c 'kill -KILL $$'
  try acquire left --ttl 500ms
  wait_until "$PATIENCE" absent rlock:left
  try log --json
  exits 0
  query 'map({key, value: .end}) | from_entries |
    .given == "released" and .taken == "evicted" and .left == "died"'
  query '.[] | select(.key == "hit") | .exit_status == 137'
  matches "$(rlock log left)" ' [0-9a-z]+\? +died ' # when is not known
  matches "$(rlock log given)" ' [0-9a-z]+ +released '
  try status left
  matches "$OUT" $'\nleft +free .* died [0-9.]+m?s ago '
}

@test "a script under --hold-pid has ended, which is no release; one that could not keep its lock has lost it" {
  start script sleep 600
  try acquire ended --hold-pid "$PID"
  kill -KILL "$PID"
  start script sleep 600
  try acquire given --hold-pid "$PID"
  try release given --token "$OUT"
  start script sleep 600
  try acquire lost --ttl 4 --hold-pid "$PID"
  freeze "$REDIS_PID" # until the script has been told
  finish "$PID"
  kill -CONT "$REDIS_PID"
  wait_until "$PATIENCE" absent rlock:ended
  wait_until "$PATIENCE" absent rlock:lost
  try log --json
  query 'map({key, value: .end}) | from_entries | .ended == "ended" and .given == "released" and .lost == "lost"'
  try log ended
  matches "$OUT" '[0-9.]+m?s +ended +'
  try status ended
  matches "$OUT" $'\nended +free .* ended [0-9.]+m?s ago '
  same "$(rlock status --json ended lost | jq -c 'map(.counters | [.failed, .lost])')" '[[0,0],[1,1]]'
}

@test "an eviction and a loss are told apart from other endings, whoever notices them" {
  start script sleep 600
  try acquire evicted --hold-pid "$PID"
  try release evicted --force
  finish "$PID"
  hold lost --ttl 1500ms
  cli DEL rlock:lost >/dev/null
  finish "$HOLDER"
  exits 76
  wait_until "$PATIENCE" absent rlock:evicted
  try log --json
  query 'map({key, value: .end}) | from_entries | .evicted == "evicted" and .lost == "lost"'
}

@test "a run whose guard was killed ended by the signal that killed its command with it" {
  hold job
  kill -KILL "$(guard_of "$HOLDER")"
  finish "$HOLDER"
  exits 70
  try log job --json
  query '.[0] | .end == "signalled" and .signal == 9 and .exit_status == 137'
  try status job
  matches "$OUT" $'\njob +free .* SIGKILL [0-9.]+m?s ago '
  try status job --json
  query '.[0].last | .end == "signalled" and .exit_status == 137'
  contains "$(rlock status --prometheus)" 'rlock_last_exit_status{key="job"} 137'
}

@test "a run that took too long and answered TERM with 0 looks no better in status than in log" {
  try run --key job --max-runtime 500ms -- sh -c 'trap "exit 0" TERM; sleep 600 & wait'
  exits 124
  try log job --json
  query '.[0].end == "timeout"'
  try status job --json
  query '.[0].last | .end == "timeout" and .exit_status == null'
  try status job
  matches "$OUT" $'\njob +free .* timeout [0-9.]+m?s ago '
  try status job --prometheus
  contains "$OUT" $'\nrlock_last_exit_status{key="job"} 124\n'
  contains "$OUT" $'\nrlock_last_failed{key="job"} 1\n'
  try run job -- true
  try status job --prometheus
  contains "$OUT" $'\nrlock_last_failed{key="job"} 0\n'
}

@test "a run whose command could not be started has the status that run exits with" {
  printf '#!/nowhere/sh\n' >"$T/command"
  chmod +x "$T/command"
  try run --key job -- "$T/command"
  exits 127
  try log job --json
  query '.[0] | .end == "exited" and .exit_status == 127'
}

@test "the newest are last, -n of each lock, and several locks are merged by time" {
  local i
  for i in 1 2 3; do
    try run --key one --note "$i" -- true
    try run --key two --note "$i" -- true
  done
  try log --json
  query '[.[] | "\(.key)\(.note)"] == ["one1", "two1", "one2", "two2", "one3", "two3"]'
  try log -n 1 --json
  query '[.[] | "\(.key)\(.note)"] == ["one3", "two3"]'
  try log two -n 2 --json
  query '[.[] | "\(.key)\(.note)"] == ["two2", "two3"]'
  try log -n 0 --json
  exits 0
  query '. == []'
  try log 'o*' --json
  query '[.[].key] == ["one", "one", "one"]'
  try log nothing
  exits 0
  same "$(wc -l <"$T/out")" 1
}

# The runs of these ends, the oldest first, in the form that Redis keeps; the last ends now.
remembered() { # LOCK END...
  cli EVAL "local now = redis.call('TIME')[1] * 1000
    for i, how in ipairs(ARGV) do
      redis.call('RPUSH', KEYS[1], string.format('%d %d %d 0 1 %s a@h h u 1 c n', i, now - (#ARGV - i) * 3600000 - 1,
        now - (#ARGV - i) * 3600000, how))
    end
    redis.call('HSET', KEYS[2], 'state', '1 1 0 0 0')" 2 "{rlock:$1}:history" "{rlock:$1}:meta" "${@:2}" >/dev/null
}

@test "--failed shows the runs that failed or were evicted, and no others" {
  remembered job 3 0 signal:9 died lost timeout - ended evicted,a@h replaced,a@h interrupted
  remembered other 1 0
  rlock hold job --for 1h
  try log --failed job --json
  exits 0
  query 'map(.exit_status // .end) == [3, 137, "died", "lost", "timeout", "evicted"]'
  try log --failed job
  matches "$OUT" $'^KEY +STARTED .*\njob .* +3 +a@h .*\njob .* +SIGKILL +a@h '
  same "$(wc -l <"$T/out")" 7
  try log --failed 'o*' job --json -n 2
  query 'map([.key, .exit_status // .end]) == [["job", "timeout"], ["job", "evicted"], ["other", 1]]'
  try log --failed --since 8h30m --json # each ended an hour after the one before, and the eleventh now
  query 'map(select(.key == "job") | .exit_status // .end) == [137, "died", "lost", "timeout", "evicted"]'
}

@test "--failed finds failures that are a hundred runs old, and -n counts failures alone" {
  # shellcheck disable=SC2046 # one word for each run
  remembered job 1 2 $(printf '0 %.0s' {1..98})
  try log --failed --json
  query 'map(.exit_status) == [1, 2]'
  try log --failed --json -n 1
  query 'map(.exit_status) == [2]'
  try log --failed -n 0
  same "$ERR" ''
}

@test "--failed says where nothing has failed" {
  rlock run job -- true
  try log --failed
  exits 0
  same "$ERR" 'rlock: no run is known to have failed'
  try log job --failed
  same "$ERR" 'rlock: no run is known to have failed'
  try log job --failed --since 1h
  matches "$ERR" '^rlock: no run has failed since [0-9-]{10} [0-9:]{8}$'
  try log jbo --failed
  same "$ERR" 'rlock: no run of jbo is known to have ended; check its name'
}

@test "-f --failed shows each failure as it ends, and says that it waits for one" {
  rlock run job -- true
  start follower rlock log -f --failed --json
  wait_for_text 'no run is known to have failed' "$T/follower.err"
  wait_for_text 'rlock: waiting for a run to fail' "$T/follower.err"
  try run --key job --note good -- true
  try run --key job --note bad -- false
  wait_for_text bad "$T/follower.out"
  kill "$PID"
  same "$(jq -c 'map(.note)' "$T/follower.out")" '["bad"]'
}

@test "-f tells at once that there is nothing to show, and what a number behind it may mean" {
  try log --failed 1d nosuch
  contains "$ERR" 'check its name; for the last 1d write --since 1d'
  start follower rlock log -f 5
  wait_for_text 'rlock: no run of 5 is known to have ended; check its name; for the last 5 runs write -n 5' "$T/follower.err"
  wait_for_text 'rlock: waiting for a run to end' "$T/follower.err"
  try run 5 -- true
  wait_for_text true "$T/follower.out"
  kill "$PID"
  same "$(head -n 1 "$T/follower.out" | wc -c)" "$(rlock log 5 | head -n 1 | wc -c)" # the heading fits what is below it
}

@test "log of a lock that nobody has used says so" {
  try log --failed 1d
  contains "$ERR" 'check its name; for the last 1d write --since 1d'
  try log jbo
  exits 0
  same "$ERR" 'rlock: no run of jbo is known to have ended; check its name'
  hold night
  try log night
  same "$(rlock log job -n 0 2>&1 | wc -l)" 1
  matches "$ERR" '^rlock: no run of night has ended yet; [^ ]+ has held it since [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+$'
  try log
  matches "$ERR" '^rlock: no run of night has ended yet; [^ ]+ has held it since [0-9-]+ [0-9:]+$'
  try log --json
  same "$OUT$ERR" '[]'
  try log --prefix other:
  same "$ERR" "rlock: no run is known to have ended under the prefix 'other:'"
  try log night --since 1h
  contains "$ERR" 'no run of night has ended yet; '
  try log jbo --since 1h
  same "$ERR" 'rlock: no run of jbo is known to have ended; check its name'
  rlock run job -- true
  try log job jbo
  same "$ERR" ''
}

@test "--since takes a time too, and what is no time is refused" {
  try run --key job --note new -- true
  try log job --since "$(date +%F)" --json
  query '[.[].note] == ["new"]'
  try log job --since "$(date -d '1 day' +%F)"
  exits 64
  same "$ERR" "rlock: --since: $(date -d '1 day' +%F) is yet to come"
  try log job --since "$(date -d '2 minutes' +%H:%M)" --json # of yesterday
  query 'length == 1'
  try log job --since 1ms
  matches "$ERR" '^rlock: no run has ended since [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+$'
  try log job --since "$(date -u -d '1 hour ago' +%FT%TZ)" --json
  query 'length == 1'
  cli FLUSHALL
  refuses 64 "--since: '26-11-22' is neither a time" log --since 26-11-22
  refuses 64 "--since: '25:00' is neither a time such as 08:00, 15:30, yesterday, 2026-11-22 or '2026-11-22 08:00', nor a duration" log --since 25:00
  refuses 64 "--since: '2026-13-01' is neither a time such as " log --since 2026-13-01
  refuses 64 "--since: 'last week' is neither a time such as 08:00, " log --since 'last week'
}

@test "--since takes a time of yesterday" {
  local now
  now=$(date +%s%3N)
  cli RPUSH '{rlock:job}:history' "7 $((now - 200000000)) $((now - 190000000)) 0 1 0 a@h h u 1 c old" \
    "8 $((now - 5000)) $((now - 4000)) 0 1 0 a@h h u 1 c new" >"$T/count"
  try log job --since 'yesterday 22:00' --json
  query '[.[].note] == ["new"]'
  try log --since 'yesterday 25:00'
  exits 64
}

@test "a timeline of a lock that nobody has heard of says so" {
  try log --timeline nosuch
  exits 0
  contains "$ERR" 'no run of nosuch is known to have ended; check its name'
  try run --key job -- true
  try log --timeline
  same "$ERR" ''
}

@test "on a terminal the timeline tells how to see more of runs that are all of the last hours, if --since does not say what to draw" {
  try run --key job -- true
  cli LPUSH '{rlock:job}:history' '7 1763900000000 1763900100000 0 1 0 root@db1 h root 1 x n' # which is not drawn
  OUT=$(TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" rlock log --timeline </dev/null)
  contains "$OUT" 'rlock: all that is drawn happened in the last 5m; --since 5m draws it larger'
  OUT=$(TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" sh -c '
    rlock log --timeline --since 1h; rlock log --timeline -q' </dev/null)
  [[ $OUT != *larger* ]] || fail "$OUT"
  a_day
  OUT=$(TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" rlock log --timeline </dev/null)
  [[ $OUT != *larger* ]] || fail "$OUT"
}

@test "--since takes today and yesterday, whose days begin at midnight of the local zone" {
  local day
  export TZ=UTC-9
  for day in today yesterday; do
    cli EVAL "for i, at in ipairs({ARGV[1] - 1, ARGV[1]}) do
      redis.call('RPUSH', KEYS[1], string.format('%d 0 %d000 0 1 0 a@h h u 1 c n', i, at)) end" \
      1 "{rlock:$day}:history" "$(date -d "$day 00:00" +%s)"
    try log "$day" --since "$day" --json
    query '[.[].fence] == [2]'
  done
}

@test "on a narrow terminal END and HOLDER are shown whole, what is worth less is cut or leaves, and HELD stays" {
  local row
  cli RPUSH '{rlock:nightly}:history' \
    '7 1763900000000 1763900100000 0 1 evicted,root@vm%20pid%2019523 deploy@web3 web3 root 1 backup.sh%20--full n'
  row=$(TERM=xterm NO_COLOR=1 script -qec 'stty cols 80; rlock log nightly' /dev/null | tr -d '\r' | tail -n 1)
  matches "$row" '^nightly 2025-[0-9-]+ [0-9:]+ 1m40s evicted by root@vm deploy@web3 backup.+~$'
  contains "$(rlock log nightly)" ' evicted by root@vm pid 19523 '
  rlock hold nightly --until 'tomorrow 08:00' --holder ops@web3
  row=$(TERM=xterm NO_COLOR=1 script -qec 'stty cols 80; rlock log nightly' /dev/null | tr -d '\r' | tail -n 1)
  matches "$row" "^nightly [0-9]{2}-[0-9]{2} [0-9:]+ +- +on hold [0-9dhm]+ +ops@web3 +-$" # this year's have no year
  cli RPUSH '{rlock:deploy-web}:history' \
    '7 1763900000000 1763900100000 0 1 evicted,root@vm%20pid%2019523 ci-runner@build-07.internal h root 1 deploy.sh n'
  row=$(TERM=xterm NO_COLOR=1 script -qec 'stty cols 80; rlock log deploy-web' /dev/null | tr -d '\r' | tail -n 1)
  matches "$row" '^deploy-web 2025-[0-9-]+ [0-9:]+ 1m40s evicted by root@vm ci-runne[^ ]*~[^ ]*nternal$'
}

@test "on a narrow terminal a long name or end is cut before HOLDER and HELD leave" {
  local row end key
  key=$(printf '%64s' '' | tr ' ' k)
  for end in evicted,root@vm%20pid%2019523 0; do
    cli RPUSH "{rlock:$key}:history" \
      "7 1763900000000 1763900100000 0 1 $end deploy@web3 web3 root 1 backup.sh%20--full n"
  done
  row=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 80; rlock log $key" /dev/null | tr -d '\r' | tail -n 1)
  matches "$row" '^k{11,}~k{11,} 2025-[0-9-]+ [0-9:]+ 1m40s 0 +deploy@web3$'
  cli RPUSH '{rlock:short}:history' "7 1763900000000 1763900100000 0 1 0 root@a-machine-in-the-far-north web3 root 1 x n"
  row=$(TERM=xterm NO_COLOR=1 script -qec 'stty cols 40; rlock log short' /dev/null | tr -d '\r' | tail -n 1)
  matches "$row" '^short 2025-[0-9-]+ [0-9:]+ 1m40s 0$' # there is no room for HOLDER
}

@test "on a terminal the log of one lock ends with who holds it now, and names that differ at their ends stay apart" {
  local key
  for key in production-database-migration-europe-we{st,ak}; do try run "$key" -- true; done
  hold "$key"
  OUT=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 80; rlock log $key; rlock log 'prod*'" /dev/null | tr -d '\r')
  same "$(grep -c "^rlock: $key: [^ ]* has held it since [0-9-]* [0-9:]*$" <<<"$OUT")" 1
  matches "$(tail -n 2 <<<"$OUT" | cut -d' ' -f1 | xargs)" '^production-[^ ]*-europe-west production-[^ ]*-europe-weak$'
  same "$(rlock log "$key" 2>&1 | wc -l)" 2
}

@test "-f shows each run as it ends, under one heading" {
  try run --key job --note before -- true
  start follower rlock log -f
  wait_for_text before "$T/follower.out"
  try run --key job --note after -- true
  wait_for_text after "$T/follower.out"
  same "$(grep -c '^KEY' "$T/follower.out")" 1
  same "$(wc -l <"$T/follower.out")" 3
  kill "$PID"
}

@test "-f --json prints an array for the runs of the locks named only" {
  start follower rlock log -f --json job
  try run --key other -- true
  try run --key job --note first -- true
  wait_for_text first "$T/follower.out"
  try run --key job --note second -- true
  wait_for_text second "$T/follower.out"
  kill "$PID"
  same "$(jq -c '[.[].note]' "$T/follower.out")" $'["first"]\n["second"]'
}

@test "-f shows what has ended meanwhile in the order in which it began, whichever lock it was" {
  try run --key job --note before -- true
  start follower rlock log -f --redis-timeout 500ms
  wait_for_text before "$T/follower.out"
  kill -STOP "$PID"
  try run --key late --note first -- true
  try run --key early --note second -- true
  kill -CONT "$PID"
  wait_for_text second "$T/follower.out"
  kill "$PID"
  same "$(grep -oE 'before|first|second' "$T/follower.out" | xargs)" 'before first second'
}

@test "--since shows all runs that the server keeps, however often the lock was on hold" {
  local i now
  now=$(date +%s%3N)
  for i in {1..100}; do
    echo "RPUSH {rlock:job}:history \"$i $((now - 9000 + i)) $((now - 8000 + i)) 0 1 0 a@h h u 1 c n\""
  done | cli >/dev/null
  for i in 1 2 3; do
    try hold job --for 1h
    try hold job --end
  done
  try log job --since 1h --json
  query '[.[] | select(.fence)] | length == 100'
  query '[.[] | select(.event)] | length == 6'
}

@test "-f goes on when Redis does not answer for a while: it says so once, and prints what has ended meanwhile" {
  try run --key job --note before -- true
  start follower rlock log -f --redis-timeout 500ms
  wait_for_text before "$T/follower.out"
  freeze "$REDIS_PID"
  wait_for_text 'trying again' "$T/follower.err"
  try status --redis-timeout 2s # it fails again meanwhile
  exits 69
  kill -CONT "$REDIS_PID"
  try run --key job --note after -- true
  wait_for_text after "$T/follower.out"
  kill "$PID"
  matches "$(<"$T/follower.err")" '^rlock: [^;]*; trying again$'
  same "$(wc -l <"$T/follower.out")" 3
}

@test "-f shows whatever is new, even if it ended before: a death is found out later, and a clock is set back" {
  local i now
  now=$(date +%s%3N)
  for i in {1..30}; do cli RPUSH '{rlock:job}:history' "$i $((now - 9000)) $((now - 8000)) 0 1 0 a@h h u 1 c old-$i" >"$T/count"; done
  start follower rlock log -f -n 1 job
  wait_for_text old-30 "$T/follower.out"
  cli RPUSH '{rlock:job}:history' "31 $((now - 900000)) $((now - 800000)) 0 1 died a@h h u 1 c new" >"$T/count"
  wait_for_text new "$T/follower.out"
  kill "$PID"
  same "$(wc -l <"$T/follower.out")" 3 # nothing is printed only because it was not printed at first
}

@test "-f and --watch go on while the password is changed there and not yet in our file" {
  echo old >"$T/password"
  chmod 600 "$T/password"
  export RLOCK_PASSWORD_FILE=$T/password
  cli CONFIG SET requirepass old >/dev/null
  cli() { "$REDIS_CLI" -s "$REDIS_SOCK" --no-auth-warning -a "$password" "$@"; }
  local password=old follower
  start follower rlock log -f
  follower=$PID
  start watch rlock status --watch
  wait_for_text waiting "$T/follower.err"
  wait_for_text KEY "$T/watch.out"
  cli CONFIG SET requirepass new >/dev/null
  password=new
  cli CLIENT KILL TYPE normal SKIPME yes >/dev/null
  wait_for_text 'trying again' "$T/follower.err"
  wait_for_text WRONGPASS "$T/watch.out"
  echo new >"$T/password"
  try run --key job --note after -- true
  wait_for_text after "$T/follower.out"
  kill "$follower" "$PID"
}

@test "the table is ordered by what it shows, the time of the start" {
  start long rlock run --key long -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$T/go"
  wait_held long
  try run --key short -- true
  touch "$T/go"
  finish "$PID"
  try log --json
  query '[.[].key] == ["long", "short"]'
}

@test "the timeline of a Redis without locks ends now" {
  export TZ=UTC
  try log --timeline --since 3h
  exits 0
  matches "$OUT" "($(date -d '-1 hour' +%H)|$(date -d '-2 hour' +%H)):[0-5]"
}

@test "--since leaves out what ended before" {
  local now
  now=$(date +%s%3N)
  cli RPUSH '{rlock:job}:history' "7 $((now - 7200000)) $((now - 6000000)) 0 1 0 a@h h u 1 c old" \
    "8 $((now - 5000000)) $((now - 60000)) 0 1 0 a@h h u 1 c long"
  try run --key job --note new -- true
  try log job --since 2h --json
  query '[.[].note] == ["old", "long", "new"]'
  try log job --since 1h --json # of the long one the end counts
  query '[.[].note] == ["long", "new"]'
}

@test "a hundred runs are kept, and take less than 20 KB" {
  local i
  cli EVAL "for i = 1, 100 do redis.call('RPUSH', KEYS[1], i .. ' 1 2 0 1 0 ' .. string.rep('x', 40) .. ' h u 1 c n') end" \
    1 '{rlock:job}:history'
  try run --key job --note "$(printf '%400s' x)" --holder "$(printf '%200s' x)" -- true "$(printf '%300s' x)"
  (($(cli LLEN '{rlock:job}:history') < 116))
  for i in {1..4}; do
    cli EVAL "for i, e in ipairs(redis.call('LRANGE', KEYS[1], -1, -1)) do for j = 1, 100 do
      redis.call('RPUSH', KEYS[1], e) end end; redis.call('LTRIM', KEYS[1], -100, -1)" 1 '{rlock:job}:history'
  done
  (($(cli MEMORY USAGE '{rlock:job}:history' SAMPLES 0) < 20480))
  try log job -n 100 --json
  query 'length == 100'
  try run --key job -- true
  (($(cli LLEN '{rlock:job}:history') > 100)) # it is trimmed now and then
  try log job -n 1000 --json
  query 'length == 100'
}

@test "hostile text in the history harms neither the terminal nor jq" {
  cli RPUSH '{rlock:job}:history' $'7 1000 2000 0 1 3 %1b%5b31mevil h u 1 %0aCOMMAND %zz' $'\e[2J' \
    '9223372036854775807 -1 1 1 1 1 a b c d e f' 'evicted' "8 1 2 3 0 evicted,%1b[31m a b c d e f"
  cli HSET '{rlock:job}:meta' state '1 1 0 0 0'
  try log
  exits 0
  same "$(tr -d '[:print:]\n' <"$T/out" | wc -c)" 0
  same "$(wc -l <"$T/out")" 3
  try log --json
  query '[.[].fence] == [8, 7]'
}

# The runs of twenty locks on one day, in the form that Redis keeps: some every minute, some an hour long, one that
# fails.
a_day() {
  cli EVAL "
    local clock = redis.call('TIME')
    local now, fence = clock[1] * 1000, 1
    local function add(lock, ago, long, how)
      fence = fence + 1
      redis.call('RPUSH', '{rlock:' .. lock .. '}:history', string.format('%d %.0f %.0f 0 1 %s a@h h u 1 c n',
        fence, now - ago * 60000, now - ago * 60000 + long * 60000, how))
      redis.call('HSET', '{rlock:' .. lock .. '}:meta', 'state', fence .. ' 1 0 0 0')
    end
    for i = 99, 0, -1 do add('minutely', i + 0.5, 0.2, '0') end
    for l = 1, 12 do for h = 23, 0, -1 do add('hourly-' .. l, h * 60 + l * 5, l, '0') end end
    for l = 1, 6 do add('nightly-' .. l, 600 + l * 60, 60, '0') end
    add('nightly-fails', 300, 30, '1')" 0
}

@test "a server that tells of 150,000 holds costs seconds, not minutes" {
  start_fake holds
  try log job --redis-timeout 20
  exits 0
  ((TOOK < 20000)) || fail "took $TOOK ms"
}

@test "a timeline of a day of twenty locks: as wide as allowed, with failures marked without colour" {
  a_day
  TZ=UTC try log --timeline
  exits 0
  same "$(wc -l <"$T/out")" 23
  (($(wc -L <"$T/out") <= 100))
  [[ $OUT != *$'\e'* ]]
  LC_ALL=C matches "$OUT" $'\nnightly-fails +#*X +\n'
  matches "$OUT" $'\nminutely +~+[.=-]+\n'
  matches "$OUT" $'\n +(([0-9]{2}:00|[0-9]{2} [A-Z][a-z]{2}) +){5}' # midnight has the date
  LC_ALL=C.UTF-8 try log --timeline 'nightly*'
  contains "$OUT" '█✗'
  same "$(grep -c ^nightly "$T/out")" 7
}

@test "the marks of a timeline are those of UTF-8, however the locale spells that" {
  try run job -- false
  local locale
  for locale in C.UTF-8 C.utf8 en_US.UTF8 en_US.utf-8; do
    contains "$(env LC_ALL="$locale" rlock log --timeline)" '✗'
  done
  contains "$(env LC_ALL=C rlock log --timeline)" X
}

@test "the timeline marks what --failed lists, and no run that was told to stop" {
  start stopped rlock run --key stopped -- sh -c 'trap "exit 0" TERM; touch "$0"; while :; do sleep 0.02; done' "$T/up"
  wait_until "$PATIENCE" test -e "$T/up"
  kill "$PID"
  finish "$PID"
  try run --key failed -- false
  LC_ALL=C try log --timeline --since 1m
  matches "$OUT" $'(^|\n)failed [^\n]*X'
  contains "$OUT" 'X a run ended badly'
  [[ ! $OUT =~ (^|$'\n')stopped\ [^$'\n']*X ]] || fail "$OUT"
}

@test "the legend of a timeline is whole on a narrow terminal" {
  a_day
  OUT=$(NO_COLOR=1 LC_ALL=C.UTF-8 TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" sh -c \
    'stty cols 50 rows 50; rlock log --timeline' </dev/null | tr -d '\r')
  contains "$OUT" unknown
  (($(LC_ALL=C.UTF-8 wc -L <<<"$OUT") <= 50)) || fail "$OUT"
}

@test "the timeline is as wide as the terminal, and red where a run failed" {
  local columns
  a_day
  for columns in 80 200; do
    OUT=$(LC_ALL=C.UTF-8 TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" sh -c \
      "stty cols $columns rows 50; rlock log --timeline" </dev/null)
    contains "$OUT" $'\e[31m'
  # shellcheck disable=SC2001 # the pattern is an expression
    same "$(sed 's/\x1b\[[0-9]*m//g' <<<"$OUT" | tr -d '\r' | LC_ALL=C.UTF-8 wc -L)" "$columns"
  done
}

@test "a timeline of a month or of years has dates below it" {
  local days
  rlock run job -- true
  for days in 30 180 365 3000; do
    try log --timeline --since "${days}d"
    matches "$OUT" $'\n +([0-9]{2} [A-Z][a-z]{2}|[A-Z][a-z]{2} [0-9]{4})'
  done
}

@test "when a run has died is unknown, in the timeline and wherever status says how the last run ended" {
  local now fence
  now=$(date +%s%3N)
  fence=$(rlock run job -- sh -c 'echo $((RLOCK_FENCE + 1))')
  cli RPUSH '{rlock:job}:history' "$fence $((now - 40000)) $((now - 5000)) 0 1 died a@h h 7 1 c old" >"$T/count"
  LC_ALL=C try log --timeline --since 1m
  matches "$OUT" $'(^|\n)job [^\n]*[.]~+X'
  OUT=$(NO_COLOR=1 python3 "$BATS_TEST_DIRNAME/../support/terminal.py" rlock status job </dev/null) || (($? == 1))
  matches "$OUT" 'last  died, noticed ([5-9]|[1-9][0-9])'
  contains "$(rlock status --all)" ' died, noticed '
}

@test "the timeline shows the current holders" {
  hold job
  try log --timeline --since 1m
  exits 0
  matches "$OUT" $'^job +[.=#-]+\n'
}

@test "the timeline shows until when a lock was on hold, and explains the mark where there is one" {
  try run other -- true
  try log --timeline
  same "$(grep 'on hold' "$T/out")" ''
  rlock hold job --for 10m
  try log --timeline --since 30s
  exits 0
  same "$ERR" ''
  matches "$OUT" $'job +o+\n'
  contains "$OUT" 'held partly or wholly, o on hold'
  sleep 1 # several columns
  rlock hold job --end
  sleep 1
  try log --timeline --since 30s
  matches "$OUT" $'job +o+ +\n'
  try run job -- sleep 2
  try log --timeline --since 30s
  matches "$OUT" $'job +o+ *[.=#-]+ *\n'
  LC_ALL=C.UTF-8 try log --timeline --since 30s
  contains "$OUT" '╌ on hold'
}

@test "the timeline shows a lock that cools as held until its run ended" {
  try run job --min-hold 12h -- true
  cli EVAL "
    local now = redis.call('TIME')[1] * 1000
    local began, ended = string.format('%.0f', now - 5 * 3600000), string.format('%.0f', now - 4 * 3600000)
    for _, token in ipairs(redis.call('HKEYS', KEYS[1])) do
      local record = redis.call('HGET', KEYS[1], token)
      local cools, others, rest = record:match('^%d+ (%d+) (%S+ %S+ %S+ %S+ )%d+(.*)$')
      if cools then redis.call('HSET', KEYS[1], token, ended .. ' ' .. cools .. ' ' .. others .. began .. rest) end
    end
    redis.call('DEL', KEYS[2])
    redis.call('RPUSH', KEYS[2], '1 ' .. began .. ' ' .. ended .. ' 0 1 0 a@h h u 1 c n')" \
    2 rlock:job '{rlock:job}:history' >/dev/null
  try status job
  matches "$OUT" $'\njob +cooling .* 1h00m '
  try log --timeline --since 6h
  exits 0
  matches "$OUT" $'^job +[.=#-]+ +\n'
}

@test "--json and --timeline: choose one" {
  refuses 64 '--timeline' log --json --timeline
  refuses 64 '--timeline and --failed: choose one' log --failed --timeline
}

@test "no Redis at the address: 69, and nothing on stdout" {
  try log --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
  try status --prometheus --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
}

@test "1,000 locks of 100 runs each take less processor time than redis-cli needs to read them fifty times" {
  local ours theirs
  cli EVAL "for l = 1, 1000 do
    redis.call('HSET', '{rlock:job' .. l .. '}:meta', 'state', '1 1 0 0 0')
    for i = 1, 100 do redis.call('RPUSH', '{rlock:job' .. l .. '}:history',
      string.format('%d %d %d 0 1 0 deploy@web3 web3 deploy 8123 backup.sh%%20--full weekly', i, i * 1000, i * 1000 + 500)) end
  end" 0
  same "$(rlock log -n 100 | wc -l)" 100001
  for _ in {1..5}; do printf 'LRANGE {rlock:job%d}:history 0 -1\n' {1..1000}; done >"$T/questions"
  theirs=$(processor_ms cli <"$T/questions")
  ours=$(processor_ms rlock log -n 100)
  is_sanitized || ((ours < 10 * theirs)) || fail "$ours ms, and redis-cli $theirs ms"
}

@test "behind Sentinel, at all masters of a cluster, and merged from a quorum by fence" {
  local name
  stop_redis
  start_sentinel
  try run --key job -- true
  try log --json
  query '[.[] | [.key, .exit_status]] == [["job", 0]]'
  start_cluster
  for name in one two three four five six 'a{tag}b'; do
    try run --key "$name" -- true
    exits 0
  done
  try log --json
  exits 0
  query '[.[].key] == ["one", "two", "three", "four", "five", "six", "a{tag}b"]'
  try log 't*' 'a{tag}b' --json
  query '[.[].key] == ["two", "three", "a{tag}b"]'
  try status --prometheus
  same "$(grep -c '^rlock_acquired_total{.*} 1$' <<<"$OUT")" 7
  start_quorum 3
  for name in 0 3; do
    try run --key job --ttl 1s -- sh -c "exit $name"
    exits "$name"
  done
  stop "${QUORUM_PIDS[0]}"
  try log --json
  exits 0
  query '[.[] | [.key, .exit_status]] == [["job", 0], ["job", 3]]'
  try log --failed --json -n 1
  query '[.[] | [.key, .exit_status]] == [["job", 3]]'
  try log --timeline
  exits 0
  matches "$OUT" $'^job +X'
}

# ---- metrics

@test "metrics: one of each kind for each lock, including free locks that Redis remembers" {
  try run --key good -- true
  try run --key bad -- sh -c 'exit 3'
  # shellcheck disable=SC1003 # the name ends with a backslash
  hold 'few"\' --slots 3
  try run --key cold --min-hold 1m -- true
  try status --prometheus
  exits 0
  contains "$OUT" $'\nrlock_held{key="good"} 0\n'
  contains "$OUT" $'\nrlock_held{key="few\\"\\\\"} 1\n'
  contains "$OUT" $'\nrlock_last_exit_status{key="bad"} 3\n'
  contains "$OUT" $'\nrlock_held{key="cold"} 0\n'
  matches "$OUT" $'\nrlock_lease_seconds[{]key="cold"[}] [1-6][0-9](\\.[0-9]+)?\n'
  matches "$OUT" $'\nrlock_last_success_timestamp_seconds[{]key="good"[}] [0-9]{10}(\\.[0-9]+)?\n'
  contains "$OUT" $'\nrlock_acquired_total{key="bad"} 1\n'
  [[ $OUT != *'rlock_last_success_timestamp_seconds{key="bad"}'* ]]
}

@test "metrics pass promtool" {
  optional promtool prometheus
  try run --key good -- true
  hold $'odd "\\\t\xff日本'
  try status --prometheus
  exits 0
  promtool check metrics <"$T/out"
}
