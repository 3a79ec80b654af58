# rlock status: every fact about a lock, for people and for jq, and nothing that could fool a terminal.

load ../support/helpers
load ../support/servers
load ../support/supervision

# Nothing that a terminal would act on.
is_clean() { same "$(tr -d '[:print:]\n' <"$1" | wc -c)" 0; } # FILE

@test "without locks: a heading, an empty array, 0" {
  try status
  exits 0
  matches "$OUT" $'^KEY +MODE +HOLDER +PID +COMMAND +HELD +LEASE +WAITING +LAST +NOTE +FENCE$'
  try status --json
  exits 0
  query '. == []'
}

@test "the table has a row per lock" {
  hold job --holder deploy@web3
  try acquire other
  try status
  exits 0
  same "$ERR" ''
  same "$(wc -l <"$T/out")" 3
  matches "$OUT" $'\njob +x +deploy@web3 +'"$HOLDER"' +sleep 600 +[0-9.]+m?s +[0-9.]+s +0 +- +- +[0-9]{16}'$'\n'
  matches "$OUT" $'\nother +x '
  try status job
  exits 0
  same "$(wc -l <"$T/out")" 2
}

@test "status has the ID of the last success, and JSON since when a lock is on hold" {
  try run job --once 'v 42' -- true
  try hold job --for 1h
  try status job --json
  query '.[0].success.once == "v 42" and .[0].hold.since < .[0].hold.until'
  try run other -- true
  try status other --json
  query '.[0].success | has("once") and .once == null'
  NO_COLOR=1 on_terminal 'rlock status job'
  matches "$OUT" 'success  ok .*, at [-0-9]+ [:0-9]+, ID v 42'
}

@test "status tells how many runs have failed in a row" {
  try run job --once early -- false
  try run job --once early -- false
  try run job --once work -- true
  try run job --once next -- false
  NO_COLOR=1 on_terminal 'rlock status job'
  [[ $OUT != *failing* ]]
  try run job --once other -- false
  NO_COLOR=1 on_terminal 'rlock status job'
  matches "$OUT" ' failing  2 runs in a row'
  try status job --json
  query '.[0].counters.failed_in_a_row == 2'
}

@test "the block of a lock whose attempts have failed says how to make one more" {
  try run job --once v1 --attempts 1 -- false
  NO_COLOR=1 on_terminal 'rlock status job'
  [[ $OUT != *failing* ]]
  try run job --once v1 --attempts 1 -- true
  exits 75
  NO_COLOR=1 on_terminal 'rlock status job'
  contains "$OUT" ' failing  1 run; a run without --attempts makes one more'
  try run job --once v1 -- true
  exits 0
  NO_COLOR=1 on_terminal 'rlock status job'
  [[ $OUT != *failing* ]]
}

@test "a lock that cannot be read hides no other" {
  hold job
  cli HSET rlock:bad x 1 >/dev/null
  cli SET '{rlock:bad}:queue' x >/dev/null
  try status
  exits 0
  matches "$OUT" $'\njob +x '
  matches "$OUT" 'WRONGTYPE'
}

@test "--json has every fact about a holder" {
  hold job --note weekly --ttl 20
  try status --json
  exits 0
  query 'length == 1 and (.[0] | .key == "job" and .state == "held" and .mode == "exclusive" and .waiters == [])'
  query --arg user "$(id -un)" --arg host "$(uname -n)" --argjson pid "$HOLDER" '.[0].holders | length == 1 and (.[0] |
    .holder == "\($user)@\($host)" and .user == $user and .host == $host and .pid == $pid and .command == "sleep 600" and
    .note == "weekly" and .count == 1 and .slot == null and .held_ms >= 0 and .held_ms < 20000 and
    .lease_ms > 0 and .lease_ms <= 20000 and .fence < 9007199254740992)'
  query '.[0].holders[0].acquired_at | sub("\\.[0-9]+"; "") | fromdate | now - . | . > -2 and . < 20'
}

@test "with keys the status tells: 0 all held, 1 some free" {
  try acquire one
  try acquire two
  try status one two
  exits 0
  try status one free
  exits 1
  matches "$OUT" $'\nfree +free '
  try status free --json
  exits 1
  query '.[0] | .key == "free" and .state == "free" and .holders == []'
}

@test "a lock is free again once its lease has run out" {
  try acquire job --ttl 500ms
  wait_until 5 absent rlock:job
  try status job
  exits 1
  try status
  exits 0
  same "$(wc -l <"$T/out")" 1
}

@test "only locks under the prefix are listed, and none of rlock's other keys" {
  try acquire one
  try acquire two --prefix other:
  try status --json
  query '[.[].key] == ["one"]'
  try status --prefix other: --json
  query '[.[].key] == ["two"]'
  try acquire three --prefix 'team[1]:'
  try status --prefix 'team[1]:' --json
  query '[.[].key] == ["three"]'
}

@test "another program's key is foreign, shown with value and lease, and counts as held" {
  cli SET rlock:job token PX 30000
  try status job --json
  exits 0
  query '.[0] | .key == "job" and .state == "foreign"'
  contains "$OUT" token
  cli PERSIST rlock:job
  try status job
  exits 0
  matches "$OUT" $'\njob +foreign +string of 5 bytes .*never'
  [[ $OUT != *token* ]]
  same "$(cli GET rlock:job)" token
}

@test "foreign keys of other types are shown too, unchanged" {
  local before key
  cli RPUSH rlock:list a
  cli HSET rlock:hash 4d9e:1 1
  for key in list hash; do
    before=$(dump "rlock:$key")
    try status "$key"
    exits 0
    matches "$OUT" $'\n'"$key +foreign "
    same "$(dump "rlock:$key")" "$before"
  done
}

@test "status changes nothing on the server" {
  local before
  try acquire job
  before=$(dump rlock:job; cli KEYS '*' | sort)
  try status
  exits 0
  try status job --json
  exits 0
  same "$(dump rlock:job; cli KEYS '*' | sort)" "$before"
}

@test "escape sequences and newlines are shown escaped in the table and kept in JSON" {
  local evil=$'\e[31mred\a\nrow 2\r\t\x7f"\\' key=$'a\e[2J\tb'
  try acquire --key "$key" --holder "$evil" --note "$evil"
  exits 0
  try status
  exits 0
  same "$(wc -l <"$T/out")" 2
  is_clean "$T/out"
  contains "$OUT" '[31mred'
  try status --json
  exits 0
  is_clean "$T/out"
  query --arg key "$key" '.[0].key == $key'
  query --arg evil "$evil" '.[0].holders[0] | .holder == $evil and .note == $evil'
}

@test "bytes that are not UTF-8 leave the table clean and JSON valid" {
  try acquire --key $'k\xff' --holder $'\xc3(\xf0\x28' --note $'\xed\xa0\x80'
  exits 0
  try status
  exits 0
  is_clean "$T/out"
  try status --json
  exits 0
  query '.[0].state == "held"'
  iconv -f UTF-8 -t UTF-8 "$T/out"
}

@test "a command with control bytes is escaped in the messages about it" {
  start holder rlock run --key job -- sh -c 'sleep "$0"' 600 $'\e]0;title\a\nx'
  wait_held job
  try run --key job -n -- true
  exits 75
  same "$(wc -l <"$T/err")" 1
  is_clean "$T/err"
  try status
  same "$(wc -l <"$T/out")" 2
}

@test "no colour into a pipe" {
  hold job
  try status
  [[ $OUT != *$'\e'* ]]
}

@test "no Redis at the address: 69, and never free" {
  try status job --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
  contains "$ERR" 127.0.0.1:1
  try status --json --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
}

@test "bidirectional and invisible characters are escaped everywhere, wide ones are not" {
  local evil=$'\xe2\x80\xaeevil\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8\xc2\x9b31m' good='дежурный 日本 ☎'
  try acquire --key "k$evil" --holder "$evil" --note "$evil"
  try acquire --key good --holder "$good"
  try status
  [[ $OUT != *$'\xe2\x80\xae'* && $OUT != *$'\xe2\x80\x8b'* && $OUT != *$'\xef\xbb\xbf'* && $OUT != *$'\xe2\x80\xa8'* && $OUT != *$'\xc2\x9b'* ]]
  contains "$OUT" '\u{202e}evil'
  contains "$OUT" "$good"
  try status --json
  [[ $OUT != *$'\xe2\x80\xae'* && $OUT != *$'\xc2\x9b'* ]]
  query --arg evil "$evil" 'any(.[]; .key == "k\($evil)" and .holders[0].holder == $evil and .holders[0].note == $evil)'
}

@test "text that others wrote into our keys cannot fool the terminal either" {
  cli SET $'rlock:a\e]0;title\a' $'\e[2J\n\xff\xe2\x80\xae'
  try status
  exits 0
  is_clean "$T/out"
  same "$(wc -l <"$T/out")" 2
  cli HSET rlock:b rlock 1 token $'9999999999999 0 1 0 0 l %1b[31m %0a %zz x %e2%80%ae -'
  try status
  exits 0
  is_clean "$T/out"
  same "$(wc -l <"$T/out")" 3
  try status --json
  query 'length == 2'
}

# on_terminal COMMAND [STEPS]: a shell command on a terminal of 80 columns, and what its user does; sets STATUS and OUT
on_terminal() {
  STATUS=0
  OUT=$(TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" sh -c "stty cols 80 rows 24; $1" <<<"${2-}") || STATUS=$?
}

@test "colour on a terminal, unless NO_COLOR is set or the terminal has no colours" {
  try acquire job
  on_terminal 'rlock status'
  matches "$OUT" $'\e\\[32mx\e\\[0m'
  NO_COLOR=1 on_terminal 'rlock status'
  [[ $OUT == *MODE* && $OUT != *$'\e'* ]] || fail "${OUT@Q}"
  for words in '' --watch; do
    on_terminal "TERM=dumb timeout 2 rlock status $words"
    [[ $OUT == *MODE* && $OUT != *$'\e'* ]] || fail "${OUT@Q}"
  done
}

@test "the block of one lock has the colours of the table" {
  try acquire job
  on_terminal 'rlock status job'
  matches "$OUT" $'\e\\[32mjob  held'
  rlock hold job --for 1h
  rlock release job --force --now
  on_terminal 'rlock status job'
  matches "$OUT" $'\e\\[33mjob  free, on hold'
  on_terminal 'rlock status other'
  matches "$OUT" $'\e\\[2mother  free'
}

@test "an empty table says on a terminal where it looked, and how to see more" {
  try status
  same "$ERR" ''
  on_terminal 'rlock status'
  contains "$OUT" "rlock: no lock is held under the prefix 'rlock:' on $RLOCK_REDIS; \`rlock status --all\` shows those that are free"
  on_terminal 'rlock status --all'
  contains "$OUT" "rlock: no lock is known under the prefix 'rlock:' on $RLOCK_REDIS"
}

@test "a row is one line on a terminal: columns leave by their worth, commands and notes are cut, KEY and FENCE stay" {
  local long wide heading row key command
  long=$(printf '%60s' '' | tr ' ' x)
  hold job --holder deploy@web3 --note "$long"
  NO_COLOR=1 on_terminal 'rlock status'
  heading=$(head -n 1 <<<"$OUT" | tr -d '\r')
  matches "$heading" '^KEY +MODE +HOLDER +PID +COMMAND +HELD +LEASE +NOTE +FENCE *$'
  contains "$OUT" ' deploy@web3 '
  [[ $(tr -d '\r' <<<"$OUT") =~ ' '[0-9]{16}($|$'\n') ]] || fail "$OUT"
  start waiter rlock run job -- true
  wait_until "$PATIENCE" waiting 1
  NO_COLOR=1 on_terminal 'stty cols 65; rlock status'
  matches "$OUT" '^KEY +MODE +HOLDER +PID +HELD +LEASE +WAITING +FENCE *'
  NO_COLOR=1 on_terminal 'stty cols 57; rlock status'
  matches "$OUT" '^KEY +MODE +HOLDER +HELD +LEASE +WAITING +FENCE *'
  NO_COLOR=1 on_terminal 'stty cols 90; rlock status' # WAITING is a number before it is a name
  [[ $OUT != *'1 ('* ]] || fail "$OUT"
  NO_COLOR=1 on_terminal 'stty cols 250; rlock status'
  matches "$OUT" ' 1 \([^ ]+@[^ ]+\) '
  kill -TERM "$PID"
  finish "$PID"
  LC_ALL=C.UTF-8 NO_COLOR=1 on_terminal 'stty cols 110; rlock status'
  contains "$OUT" ' xxxxxxxx'
  contains "$OUT" '…'
  NO_COLOR=1 on_terminal 'stty cols 110; rlock status' # a terminal without UTF-8
  contains "$OUT" 'x~'
  try acquire "$(printf '%46s' '' | tr ' ' k)"
  NO_COLOR=1 on_terminal 'rlock status'
  matches "$OUT" 'k{15,}~k{15,} x +[^ ]+ .*[0-9]{16}'
  start wide rlock run "$(printf '%150s' '' | tr ' ' y)" --note "$long" -- sh -c 'exec sleep 600' "$(printf '%150s' '' | tr ' ' z)"
  wait_held "$(printf '%150s' '' | tr ' ' y)"
  NO_COLOR=1 on_terminal 'stty cols 200; rlock status'
  row=$(grep yyy <<<"$OUT")
  key=${row%% *} command=${row#* sh -c }
  ((${#key} <= ${#command})) || fail "KEY takes more than COMMAND: $OUT"
  try acquire "$long$long" --holder "$long日本日本"
  NO_COLOR=1 on_terminal 'rlock status'
  wide=$(tr -d '\r' <<<"$OUT" | LC_ALL=C.UTF-8 wc -L)
  ((wide <= 80)) || fail "$wide columns"
  contains "$OUT" ' x '
  contains "$OUT" 'KEY '
  contains "$OUT" ' FENCE'
}

@test "a wider terminal never shows a column less" {
  local key heading before=''
  for key in job nightly-database-backup "$(printf '%46s' '' | tr ' ' k)"; do
    hold "$key" --holder backup@db1.example.com --note 'INC-42 disk swap'
    start waiter rlock run "$key" -- true
    wait_until "$PATIENCE" waiting 1 "$key"
  done
  NO_COLOR=1 on_terminal 'for columns in $(seq 50 4 190); do stty cols $columns; rlock status; done'
  while read -r heading; do
    for key in $before; do [[ " $heading " == *" $key "* ]] || fail "$key left: $heading"; done
    before=$heading
  done < <(tr -d '\r' <<<"$OUT" | grep '^KEY ')
  same "$(xargs <<<"$before")" 'KEY MODE HOLDER PID COMMAND HELD LEASE WAITING LAST NOTE FENCE'
}

@test "who holds a lock, since when and who waits is seen on 80 columns however long its name is, and both ends of that" {
  local key=k8s:prod:eu-west-1:payments-service:nightly-reconcile
  hold "$key" --holder backup@db-eu-west-1a
  start waiter rlock run "$key" -- true
  wait_until "$PATIENCE" waiting 1 "$key"
  NO_COLOR=1 on_terminal 'rlock status'
  matches "$OUT" '^KEY +MODE +HOLDER +HELD +WAITING +FENCE'
  matches "$OUT" $'\nk8s:prod:[^ ]*~[^ ]*reconcile x +backup@[^ ]*1a +[0-9.]+m?s +1 '
  rlock hold held-up --for 1h --note "$key"
  try run cold --min-hold 1h -- true
  NO_COLOR=1 on_terminal 'rlock status'
  matches "$OUT" $'\nheld-up +hold +[^ ]+ +- +59m[0-9]+s '
  matches "$OUT" $'\ncold +cooling +[^ ]+ +[0-9]+ms +59m[0-9]+s '
  NO_COLOR=1 on_terminal 'stty cols 60; rlock status' # the name is cut before HOLDER is
  matches "$OUT" $'\nk8s:[^ ]*~[^ ]*cile x +[^ ]{12,} '
  rlock run other -- true
  NO_COLOR=1 on_terminal 'rlock status --all' # a free lock has nothing but LAST to show
  matches "$OUT" '^KEY +MODE +HOLDER .*LAST .*FENCE'
}

@test "LEASE stays on a narrow terminal where it is all that is known: until when a lock is on hold, cools or is foreign" {
  local heading='^KEY +MODE .*HELD +LEASE'
  hold job
  NO_COLOR=1 on_terminal 'stty cols 38; rlock status'
  [[ $OUT != *LEASE* ]] || fail "$OUT"
  rlock hold held-up --for 1h
  NO_COLOR=1 on_terminal 'stty cols 57; rlock status'
  matches "$OUT" "$heading"
  matches "$OUT" $'\nheld-up +hold .* - +59m[0-9]+s '
  rlock hold held-up --end
  try run cold --min-hold 1h -- true
  NO_COLOR=1 on_terminal 'stty cols 57; rlock status'
  matches "$OUT" "$heading"
  matches "$OUT" $'\ncold +cooling .* [0-9]+ms +59m[0-9]+s '
  cli SET rlock:cold theirs PX 3600000 >/dev/null
  NO_COLOR=1 on_terminal 'stty cols 57; rlock status'
  matches "$OUT" $'\ncold +foreign .* - +59m[0-9]+s '
}

@test "a key that is cut anyway leaves room for the other columns, and a narrower gap comes before a shorter text" {
  local key
  key=$(printf '%66s' '' | tr ' ' k)
  try acquire "$key" --holder root@db1
  NO_COLOR=1 on_terminal 'rlock status'
  matches "$OUT" '^KEY +MODE +HOLDER +HELD +FENCE'
  contains "$OUT" ' root@db1 '
  try release "$key" --force --now
  try acquire job --holder root@db1
  start waiter rlock run job --holder root@db2 -- true
  wait_until "$PATIENCE" waiting 1
  local whole
  NO_COLOR=1 on_terminal 'stty cols 250; rlock status'
  whole=$(tr -d '\r' <<<"$OUT" | wc -L)
  NO_COLOR=1 on_terminal "stty cols $((whole - 5)); rlock status"
  contains "$OUT" ' 1 (root@db2) '
}

@test "on a terminal that is too narrow the columns that are empty leave before anything is cut" {
  try acquire a-lock-with-a-name --holder deploy@a-machine-with-a-name
  NO_COLOR=1 on_terminal 'stty cols 100; rlock status'
  contains "$OUT" 'deploy@a-machine-with-a-name '
  lacks_columns LAST NOTE
}

lacks_columns() { # NAME...
  local heading name
  heading=$(head -n 1 <<<"$OUT")
  for name; do [[ $heading != *"$name"* ]] || fail "$heading"; done
}

@test "in a pipe rows are complete, and one long name does not widen all of them" {
  local long
  long=$(printf '%91s' '' | tr ' ' x)
  try acquire "$long" --holder "$long日本日本" --note "$long"
  try acquire short
  try status
  matches "$OUT" $'\n'"$long  x +$long日本日本  .*  $long  [0-9]{16}"
  matches "$OUT" $'\nshort {45}x '
}

@test "a process that can be killed is shown by its PID, and a dash stands for none" {
  hold kept
  try acquire taken
  try run --key cold --min-hold 1m -- true
  try status
  matches "$OUT" $'\nkept +x +[^ ]+ +'"$HOLDER"' '
  matches "$OUT" $'\ntaken +x +[^ ]+ +- '
  matches "$OUT" $'\ncold +cooling +[^ ]+ +- '
  kill -KILL "$HOLDER"
  wait_until "$PATIENCE" gone "$HOLDER"
  try status kept
  matches "$OUT" $'\nkept +(dead|free) +[^ ]+ +- '
}

renewed_for_long() { (($(cli PTTL rlock:job) > 10000)); }

@test "a holder that was killed is dead, even where its parent does not reap it; a plain acquire is said to be renewed by nobody" {
  local keeper
  start parent sh -c 'rlock run job --ttl 60 -- sleep 600 & exec sleep 600'
  wait_until "$PATIENCE" renewed_for_long
  keeper=$(rlock status job --json | jq '.[0].holders[0].pid')
  kill -KILL "$keeper"
  wait_until "$PATIENCE" gone "$keeper"
  [[ -e /proc/$keeper ]]
  try status job
  matches "$OUT" $'\njob +dead +[^ ]+ +- '
  NO_COLOR=1 on_terminal 'rlock status job'
  contains "$OUT" 'job  held, but the holder has died'
  same "$(rlock status job --json | jq -c '.[0].holders[0] | [.kept, .dead, .pid]')" '[false,true,null]'
  matches "$(rlock log job 2>&1)" 'has held it since .*, but has died$'
  try acquire taken
  NO_COLOR=1 on_terminal 'rlock status taken'
  contains "$OUT" 'process  none: nobody renews it; taken as '
  same "$(rlock status taken --json | jq -c '.[0].holders[0] | [.kept, .pid]')" '[false,null]'
}

@test "nothing is said of a killed holder on another machine, whose processes nobody here can know" {
  unshare --uts true 2>/dev/null || skip "this machine has no namespaces"
  start far unshare --uts sh -c 'hostname elsewhere && exec rlock run job --ttl 60 -- sleep 600'
  wait_until "$PATIENCE" renewed_for_long
  kill -KILL "$PID"
  wait_until "$PATIENCE" gone "$PID"
  try status job
  matches "$OUT" $'\njob +x +[^ ]+@elsewhere +'"$PID "
}

@test "a lock that cools after a run that has ended well is yellow, as in the table" {
  rlock run job --min-hold 1m -- true
  contains "$(TERM=xterm script -qec 'rlock status job' /dev/null)" $'\E[33mjob  cooling\E[0m'
}

@test "while a lock cools no process is shown, not even of a run on another machine" {
  unshare --uts true 2>/dev/null || skip "this machine has no namespaces"
  unshare --uts sh -c 'hostname elsewhere && exec rlock run job --min-hold 1m -- true'
  try status job
  matches "$OUT" $'\njob +cooling +[^ ]+@elsewhere +- '
}

@test "a holder of another user is not taken for dead" {
  ordinary_user
  hold job
  try status job
  matches "$OUT" $'\njob +x +[^ ]+ +'"$HOLDER"' '
  OUT=$("${AS_USER[@]}" "RLOCK_REDIS=$RLOCK_REDIS" rlock status job)
  matches "$OUT" $'\njob +x +[^ ]+ +'"$HOLDER"' '
}

@test "a hold lasts by the clock of Redis" {
  start_proxy
  try hold job --for 1h
  network forge '$13\r\n1' '$13\r\n0' # the clock is 31 years behind
  try status job
  matches "$OUT" $'\njob +hold +[^ ]+ +- +- +- +1157[34]d'
}

@test "readers, slots and free locks are told apart" {
  hold both --shared
  hold few --slots 3
  hold few --slots 3
  try status both few nobody
  exits 1
  matches "$OUT" $'\nboth +r '
  matches "$OUT" $'\nfew +0/3 .*\nfew +1/3 '
  matches "$OUT" $'\nnobody +free +- +- +- +- +- +0 +- +- +-$'
}

@test "the last run is shown: how it ended, and when" {
  try run --key good -- true
  try run --key bad --note weekly -- sh -c 'exit 3'
  try status good bad
  matches "$OUT" $'\ngood +free .* ok [0-9.]+m?s ago '
  matches "$OUT" $'\nbad +free .* exit 3 [0-9.]+m?s ago '
  hold bad --note monthly
  try status bad
  matches "$OUT" $'\nbad +x .* exit 3 [0-9.]+m?s ago +monthly '
}

@test "what --key names is one lock, whatever it looks like" {
  try acquire 'job*'
  try acquire job2
  try status --key 'job*' --json
  query '[.[].key] == ["job*"]'
  try release --force --key 'job*'
  try release --force --key 'jo*'
  matches "$ERR" '^rlock: jo. is not held: it is free; nothing changed; no run of it is known; check its name$'
  try release --force job2
  try log --key 'job*' --json
  query '[.[].key] == ["job*"]'
}

@test "a pattern stands for the locks that match" {
  try acquire deploy-web
  try acquire deploy-db
  try acquire backup
  try status 'deploy*' --json
  exits 0
  query '[.[].key] == ["deploy-db", "deploy-web"]'
  try status backup 'deploy-?[!b]*' --json
  exits 0
  query '[.[].key] == ["backup", "deploy-web"]'
  try status 'none*'
  exits 1
  same "$(wc -l <"$T/out")" 1
  same "$ERR" 'rlock: none*: no lock is known that matches; check the pattern'
  try status 'none*' backup 'odd?' -q
  same "$ERR" ''
  try status 'none*' --json
  same "$ERR" ''
  try acquire 'odd[1]'
  try status 'odd[1]' --json
  exits 0
  query '[.[].key] == ["odd[1]"]'
}

@test "one record that cannot be read hides no other lock" {
  try acquire good
  cli HSET rlock:bad rlock 1 token garbage
  try status --json
  exits 0
  query '[.[] | {key, state}] == [{"key": "bad", "state": "held"}, {"key": "good", "state": "held"}]'
  try status bad
  exits 0
  matches "$OUT" $'\nbad +x +another version of rlock +- '
}

@test "status of one KEY on a terminal is a block with everything about it" {
  try run job -- true
  NO_COLOR=1 on_terminal 'rlock status job'
  matches "$OUT" 'counters  taken once$'
  try run job -- sh -c 'exit 3'
  hold job --note 'disk swap'
  start one rlock run job -w 60 --note 'rel 6' -- true
  wait_for_text 'waiting for job' "$T/one.err"
  start two rlock run job -w 60 -- true
  wait_for_text 'waiting for job' "$T/two.err"
  NO_COLOR=1 on_terminal 'rlock status job'
  local fence
  fence=$(rlock status job --json | jq '.[0].holders[0].fence')
  matches "$OUT" '^job  held'
  matches "$OUT" "process  pid $HOLDER as [a-z]+ on "
  matches "$OUT" 'command  sleep 600'
  matches "$OUT" 'note  disk swap'
  matches "$OUT" "fence  $fence"
  matches "$OUT" 'lease  [0-9.]+s left'
  matches "$OUT" 'held  [0-9.]+m?s since [-0-9]+ [:0-9]+, (granted at once|after a wait of [1-9])'
  matches "$OUT" 'waiting  2'
  contains "$OUT" "then  $(id -un)@$(uname -n) starts next, unless you add --hold 1h"
  matches "$OUT" ' 1\.  .* pid [0-9]+ on .* for [0-9.]+m?s "true" \(rel 6\)'
  matches "$OUT" ' 2\.  '
  matches "$OUT" 'last  exit 3 [0-9.]+m?s ago, '
  matches "$OUT" 'success  ok [0-9.]+m?s ago, '
  matches "$OUT" $'counters  taken 3 times; 1 failed\r?\n'
  contains "$OUT" "break  rlock release job --force --fence $fence"
  NO_COLOR=1 on_terminal 'rlock status jbo'
  matches "$OUT" '^jbo  free; no run of it is known; check its name'
  matches "$OUT" 'counters  never taken'
  cli RPUSH rlock:list theirs
  NO_COLOR=1 on_terminal 'rlock status list'
  contains "$OUT" ' type  list'
  matches "$OUT" $' break  rlock release list --force\r?\n +deletes the key of the other program'
  cli SET rlock:short 1
  NO_COLOR=1 on_terminal 'rlock status short'
  matches "$OUT" $' type  string of 1 byte\r?\n'
  try status job
  matches "$OUT" '^KEY +MODE .*' # a pipe gets the table
  matches "$OUT" ' 2 \([^ )]+\) '
  try acquire many --shared
  try acquire many --shared
  NO_COLOR=1 on_terminal 'rlock status many'
  for fence in $(rlock status many --json | jq '.[0].holders[].fence'); do
    matches "$OUT" $'\n +break  rlock release many --force --fence '"$fence"$'\r?\n'
  done
  matches "$OUT" $'break all  rlock release many --force\r?$'
  NO_COLOR=1 on_terminal 'rlock status never'
  matches "$OUT" '^never  free'
  try run cold --backoff 1h -- sh -c 'exit 3'
  NO_COLOR=1 on_terminal 'rlock status cold'
  matches "$OUT" 'cooling  for [0-9hms]+ more after 1 failure, last exit 3 on .* \(--backoff\)'
}

shows_waiting() { [[ $(rlock status job --json | jq -c '.[0] | [.waiting, (.waiters | length)]') == "[$1,$1]" ]]; } # COUNT

@test "a waiter that was killed is not shown for long" {
  hold job
  start waiter rlock run job -w 600 -- true
  wait_until "$PATIENCE" shows_waiting 1
  kill -KILL "$PID"
  waiting 1 # it stands in the queue still
  wait_until "$PATIENCE" shows_waiting 0
}

@test "a command that is to be pasted repeats the servers and the prefix that were given on the command line" {
  local there="-r 'unix://$REDIS_SOCK' --prefix='other: '" fence
  try acquire job -r "unix://$REDIS_SOCK" --prefix 'other: '
  exits 0
  fence=$(rlock status job --prefix 'other: ' --json | jq '.[0].holders[0].fence')
  NO_COLOR=1 on_terminal "rlock status job $there"
  contains "$(tr -s ' \\\r\n' ' ' <<<"$OUT")" " break rlock release job $there --force --fence $fence"
  eval "RLOCK_REDIS=redis://127.0.0.1:1 rlock release job $there --force --fence $fence" >/dev/null
  try status job --prefix 'other: '
  exits 1
}

@test "a command that is to be pasted repeats the configuration file and the password file of the command line" {
  printf 'redis = unix://%s\nprefix = %s\n' "$REDIS_SOCK" other: >"$T/other.conf"
  (umask 77 && echo unused >"$T/password")
  cd "$T" || return
  try acquire job --config other.conf
  exits 0
  NO_COLOR=1 on_terminal 'rlock status job --config other.conf --username default --password-file=password'
  contains "$(tr -s ' \\\r\n' ' ' <<<"$OUT")" \
    " break rlock release job --username=default --password-file=$T/password --config=$T/other.conf --force --fence "
}

@test "a block loses nothing on a narrow terminal: values go on below, and commands can be pasted all the same" {
  local note row wide=0
  note="the disks of all four machines are replaced one after the other, which takes until the end of the week at best"
  try hold job --for 1h --note "$note"
  hold job-whose-command-does-not-fit-into-a-row
  NO_COLOR=1 on_terminal 'rlock status job'
  while IFS= read -r row; do ((${#row} <= wide)) || wide=${#row}; done <<<"${OUT//$'\r'/}"
  ((wide <= 80)) || fail "$wide columns: $OUT"
  contains "$(tr -s ' \r\n' ' ' <<<"$OUT")" "($note), since "
  NO_COLOR=1 on_terminal 'rlock status job-whose-command-does-not-fit-into-a-row'
  matches "$OUT" $' break  rlock release job-whose-[a-z-]+ --force \\\\\r?\n +--fence [0-9]+'
}

@test "the commands that status and others show to be pasted name a lock that begins with a dash by --key" {
  try run --key='-x y' --backoff 1h -- sh -c 'exit 3'
  try run --key='-x y' -w 0.1 -- true
  contains "$ERR" "\`rlock status --key='-x y'\` on a terminal shows the command that ends that"
  try acquire --key=-f
  try hold --key=-f --for 1h
  exits 0
  contains "$ERR" 'rlock release --key=-f --force --fence '
  NO_COLOR=1 on_terminal 'rlock status --key=-f'
  contains "$OUT" 'rlock release --key=-f --force --fence '
  contains "$OUT" 'rlock hold --key=-f --end'
}

@test "the commands that status shows for a name with control bytes mean that name" {
  try acquire $'a\tb'
  NO_COLOR=1 on_terminal "rlock status \"\$(printf 'a\\tb')\""
  contains "$OUT" "rlock release \$'a\\011b' --force --fence "
}

@test "the block of a lock whose last run was evicted says who did that" {
  hold job --holder a@b
  try release job --force
  finish "$HOLDER"
  NO_COLOR=1 on_terminal 'rlock status job'
  matches "$OUT" "last  evicted [0-9.]+m?s ago by [^ ]+@[^ ]+ pid [0-9]+, a@b, at "
}

@test "the block of a lock that cools says that its command has ended, and what keeps the lock" {
  try run cold --min-hold 1h -- true
  NO_COLOR=1 on_terminal 'rlock status cold'
  matches "$OUT" 'process  none any more: it ran as [a-z]+ on [^ ]+, and has ended'
  matches "$OUT" 'cooling  for [0-9hms]+ more \(--min-hold\)'
  [[ $OUT != *'its lease runs out'* ]] || fail "$OUT"
}

@test "on a narrow terminal the columns that are empty in all rows leave first, so that --all shows LAST" {
  local key
  key=$(printf '%30s' '' | tr ' ' k)
  try run "$key" -- sh -c 'exit 3'
  NO_COLOR=1 on_terminal 'rlock status --all'
  matches "$OUT" "$key free .* exit 3 [0-9.]+m?s ago"
  [[ $OUT != *FENCE* ]] || fail "$OUT"
  NO_COLOR=1 on_terminal 'stty cols 200; rlock status --all'
  matches "$OUT" '^KEY +MODE +HOLDER +PID +COMMAND +HELD +LEASE +WAITING +LAST +NOTE +FENCE'
  cli DEL "{rlock:$key}:meta" "{rlock:$key}:history" >/dev/null
  try run ended -- sh -c 'exit 3'
  hold other --holder a@b
  NO_COLOR=1 on_terminal 'rlock status --all' # nobody waits
  matches "$OUT" 'ended +free .* exit 3 [0-9.]+m?s ago'
  contains "$OUT" ' FENCE'
  NO_COLOR=1 on_terminal 'stty cols 70; rlock status --all' # too narrow for COMMAND, however short the times are
  matches "$OUT" '^KEY +MODE +HOLDER +PID +HELD +LEASE +LAST +FENCE *'
  NO_COLOR=1 on_terminal 'stty cols 60; rlock status --all'
  matches "$OUT" '^KEY +MODE +HOLDER +(PID +)?HELD +(LEASE +)?LAST +FENCE *'
  NO_COLOR=1 on_terminal 'stty cols 50; rlock status --all'
  contains "$OUT" ' FENCE'
}

@test "an eviction that is under way is shown in the table's NOTE" {
  start holder rlock run job --note weekly --kill-after 3s -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_text ready "$T/holder.out"
  try release job --force -w 0
  exits 75
  try status job
  matches "$OUT" ' being evicted by [^ ]+ pid [0-9]+ \(weekly\) +[0-9]{16}'
  finish "$PID"
  exits 76
}

@test "status, hold and release --force of a name that nobody has used ask whether that is its name, and do as they are told" {
  local words doubt='no run of it is known; check its name'
  rlock run job -- true
  try status jbo
  exits 1
  same "$ERR" "rlock: jbo: $doubt"
  contains "$OUT" $'\njbo  free '
  try status job jbo
  same "$ERR" "rlock: jbo: $doubt"
  for words in '-q jbo' '--json jbo' '--prometheus jbo' job 'jo*'; do
    # shellcheck disable=SC2086 # words
    try status $words
    same "$ERR" ''
  done
  try release jbo --force
  exits 1
  same "$ERR" "rlock: jbo is not held: it is free; nothing changed; $doubt"
  try hold job --for 1h
  same "$ERR" ''
  try hold jbo --for 1h
  exits 0
  contains "$OUT" 'jbo: on hold until '
  same "$ERR" "rlock: jbo: $doubt"
  try hold jbo --for 2h -q
  same "$ERR" ''
  try run jbo -n -- true
  exits 75
}

@test "the end of a hold is told with its seconds wherever it is told, however far away it is, and without them if they are 0" {
  local until=
  until [[ -n $until && $(date -d "$until" +%S) != 00 ]]; do
    try hold job --for 11m
    until=$(rlock status job --json | jq -r '.[0].hold.until')
  done
  contains "$OUT" "on hold until $(date -d "$until" '+%F %T') by"
  try status job
  contains "$OUT" " until $(date -d "$until" '+%a %T') "
  try run job -n -- true
  contains "$ERR" "on hold until $(date -d "$until" '+%a %T') by"
  try log job
  contains "$OUT" "on hold until $(date -d "$until" '+%a %T') "
  until=${OUT%%HOLDER*} # its row is not shifted
  [[ $(sed -n 2p "$T/out" | cut -c $((${#until} + 1))-) == "$(id -un)@"* ]] || fail "$OUT"
  try hold job --until 'tomorrow 08:00'
  contains "$OUT" "on hold until $(date -d tomorrow +%F) 08:00 by"
  try status job
  contains "$OUT" " until $(date -d tomorrow +%a) 08:00 "
}

@test "--all and patterns list free locks too, with their last end" {
  try run ended -- true
  try status
  [[ $OUT != *ended* ]]
  try status --all
  matches "$OUT" $'\nended +free .* ok [0-9.]+m?s ago '
  try status "en*"
  matches "$OUT" $'\nended +free '
}

@test "JSON has the last run and the last success as objects, or null" {
  try acquire job
  try status job --json
  query '.[0] | .last == null and .success == null and (.counters | has("evicted") and (has("forced") | not))'
  cli FLUSHALL
  try run job -- sleep 0.1
  try status job --json
  query '.[0] | .last.exit_status == 0 and .last.held_ms >= 100 and (.success | del(.once)) == .last'
}

@test "a replica is looked at with a warning" {
  local master=$REDIS_PORT
  try run job -- true
  start_redis --replicaof 127.0.0.1 "$master"
  wait_until "$PATIENCE" is_replicated
  try status --all
  exits 0
  contains "$OUT" job
  same "$ERR" "rlock: warning: redis://127.0.0.1:$REDIS_PORT is a replica: it may be behind its master"
  try log
  contains "$ERR" 'is a replica'
}
is_replicated() { [[ $(cli EXISTS '{rlock:job}:meta') == 1 ]]; }

@test "--watch ends when q is typed, and gives the screen back" {
  on_terminal 'rlock status --watch' "expect KEY
do sleep 0.1
type q"
  exits 0
  contains "$OUT" $'\e[?1049h'
  matches "$OUT" $'\e\\[\\?1049l'
}

@test "a million other keys cost few round trips" {
  cli DEBUG POPULATE 300000 other >/dev/null
  cli CONFIG RESETSTAT >/dev/null
  try status --redis-timeout 20
  exits 0
  local calls
  calls=$(cli INFO commandstats | sed -nE 's/^cmdstat_scan:calls=([0-9]+),.*/\1/p')
  ((calls <= 16)) || fail "$calls calls of SCAN"
}

@test "--watch draws it again until interrupted" {
  start watch rlock status --watch
  wait_for_text KEY "$T/watch.out"
  try acquire job
  wait_for_text 'job  x' "$T/watch.out"
  try release job --token "$OUT"
  wait_until "$PATIENCE" redrawn_without_job
  kill -INT "$PID"
  finish "$PID"
  exits 130
  same "$(<"$T/watch.err")" ''
}
redrawn_without_job() { [[ $(tail -n 4 "$T/watch.out") == redis:*$'\n'KEY*$'\n'redis:*$'\n'KEY* ]]; }

@test "--watch on a terminal redraws in place, and shows that Redis is away" {
  on_terminal 'rlock status --watch' "expect KEY
expect KEY
do kill -STOP $REDIS_PID
expect no answer
do kill -CONT $REDIS_PID
expect KEY
key C"
  exits 130
  contains "$OUT" $'\e[H'
}

@test "--watch shows the servers, the time, and how many rows do not fit" {
  local i
  for i in {1..22}; do try acquire "job$i"; done # with two lines above, as many as the terminal has: the last stays empty
  on_terminal 'rlock status --watch' "expect do not fit
key C"
  exits 130
  matches "$OUT" "$RLOCK_REDIS  [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}"
  contains "$OUT" '... and 2 rows that do not fit'
  on_terminal 'stty cols 45; LC_ALL=C rlock status --watch' "expect do not fit
key C"
  matches "$OUT" "redis://127\.~ [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}  .q quits."
}

@test "--watch of one lock shows the first who wait, and the command that breaks it below them" {
  hold job
  for i in {1..10}; do start "waiter$i" rlock run job -- true; done
  wait_until "$PATIENCE" waiting 10
  on_terminal 'stty rows 18; rlock status --watch job' "expect then
key C"
  matches "$OUT" ' 4\.  .* \.\.\.  and 6 more.* break  rlock release job '
  [[ $OUT != *'do not fit'* ]] || fail "$OUT"
  on_terminal 'rlock status --watch job' "expect then
key C"
  contains "$OUT" ' 10.  '
}

@test "--watch keeps its first row within a narrow terminal" {
  try acquire job
  on_terminal 'stty cols 20; rlock status --watch' "expect FENCE
key C"
  matches "$OUT" $'\e\\[H [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{6}[0-9]?~\e\\[K'
}

@test "--watch that nobody could continue is not stopped by Ctrl-Z" {
  on_terminal 'rlock status --watch' "expect KEY
key Z
do sleep 0.1
type q"
  exits 0
}

# Whether the program that the test below runs is stopped
STOPPED='ps -o stat= -p $(pgrep -f "[w]atch zz") | grep -q T'

@test "Ctrl-Z in --watch gives the screen back to the shell; after bg it stays stopped, after fg it has the screen again" {
  local taken=$'\e[?1049h' back=$'\e[?1049l'
  on_terminal "PS1='prompt> ' exec bash --norc --noprofile -i" "type rlock status --watch 'zz*'
expect $taken
expect FENCE
key Z
expect $back
expect Stopped
expect prompt>
type bg
until $STOPPED
type echo \$((6*7))
expect 42
type fg
expect $taken
expect FENCE
type q
expect $back
expect prompt>
type stty -a
expect susp = ^Z
type exit 5"
  exits 5
  same "$(grep -c -F "$taken" <<<"$OUT")" 2
}

@test "--watch that is started in the background waits until it has the terminal; stopped, it can be killed" {
  on_terminal "PS1='prompt> ' exec bash --norc --noprofile -i" "type rlock status --watch 'zz*' &
until $STOPPED
type fg
expect FENCE
key Z
expect Stopped
type kill %1
until ! pgrep -f '[w]atch zz'
type exec sh -c 'exit 5'"
  exits 5
  same "$(grep -c -F $'\e[?1049h' <<<"$OUT")" 1
}

@test "Ctrl-C in --watch ends the script that shows it, too" {
  on_terminal "exec bash -c 'rlock status --watch; echo went on'" "expect FENCE
key C"
  exits 130
  [[ $OUT != *'went on'* ]] || fail "$OUT"
}

@test "--watch without Redis from the start: 69" {
  try status --watch --redis redis://127.0.0.1:1
  exits 69
}

@test "--watch --json prints an array a second" {
  start watch rlock status --watch --json
  wait_until "$PATIENCE" three_arrays
  kill -TERM "$PID"
  finish "$PID"
  exits 143
}

@test "--watch --json: what is said of an outage goes to standard error, and the arrays go on after it" {
  hold job
  start watch rlock status --watch --json --redis-timeout 500ms
  wait_for_text job "$T/watch.out"
  freeze "$REDIS_PID"
  wait_for_text 'trying again' "$T/watch.err"
  local before
  before=$(wc -l <"$T/watch.out")
  kill -CONT "$REDIS_PID"
  wait_until "$PATIENCE" has_more_lines "$before" "$T/watch.out"
  kill -TERM "$PID"
  same "$(jq -r '.[].key' "$T/watch.out" | sort -u)" job
  same "$(wc -l <"$T/watch.err")" 1
}

has_more_lines() { (($(wc -l <"$2") > $1)); } # COUNT FILE

three_arrays() { [[ $(jq -c . "$T/watch.out" 2>/dev/null) == '[]'$'\n''[]'$'\n''[]'* ]]; }

@test "without a prefix the list shows rlock's and Redisson's locks, and other keys only when they are named" {
  local redisson=f3b8a4c4-1d7d-4d0f-9a54-0d8a8f4e7a11:42
  cli SET string value
  cli HSET session user 1
  cli RPUSH list a
  cli HSET theirs "$redisson" 1
  cli PEXPIRE theirs 30000
  export RLOCK_PREFIX=
  try acquire ours
  try status --json
  exits 0
  query --arg holder "$redisson" '[.[].key] == ["ours", "theirs"] and
    (.[1] | .state == "foreign" and .foreign.type == "hash" and .foreign.value == $holder and .foreign.ttl_ms > 20000)'
  try status
  matches "$OUT" $'\ntheirs +foreign +hash +-'
  try status string session
  exits 0
  matches "$OUT" $'\nsession +foreign +hash '
  matches "$OUT" $'\nstring +foreign +string of 5 bytes '
}

@test "a huge hash of another program is not read" {
  cli EVAL "for i = 1, 200000 do redis.call('HSET', KEYS[1], i, i) end" 1 rlock:huge
  cli CONFIG RESETSTAT
  try status huge
  exits 0
  matches "$OUT" $'\nhuge +foreign +hash '
  [[ $(cli INFO commandstats) != *cmdstat_hgetall* ]]
}

@test "5,000 locks are listed with few writes to the server and little processor time" {
  local reads ours theirs
  try acquire job
  cli EVAL "local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, 4999 do redis.call('HSET', 'rlock:job' .. i, unpack(fields)) end" 1 rlock:job
  cli CONFIG RESETSTAT
  rlock status >"$T/out"
  same "$(wc -l <"$T/out")" 5001
  reads=$(cli INFO stats | sed -n 's/^total_reads_processed:\([0-9]*\).*/\1/p') # none before Redis 6
  ((reads < 500)) || fail "$reads reads of the server"
  for _ in {1..5}; do printf 'HGETALL rlock:job%d\n' {1..4999}; done >"$T/questions"
  theirs=$(processor_ms cli <"$T/questions")
  ours=$(processor_ms rlock status)
  is_sanitized || ((ours < 5 * theirs)) || fail "$ours ms, and redis-cli $theirs ms for reading them five times"
  try status --json
  query 'length == 5000'
}

@test "jq can tell whether a job ran within the last day, and how it ended" {
  try run --key nightly -- sh -c 'exit 3'
  try status nightly --json
  exits 1
  query '.[0].last | .exit_status == 3 and .held_ms < 20000 and
    (.ended_at | sub("\\.[0-9]+"; "") | fromdate > now - 86400)'
}

@test "--watch: what a server that fails says is printed escaped" {
  start_proxy
  try acquire job
  start watch rlock status --watch
  wait_for_text job "$T/watch.out"
  cli CONFIG SET lua-time-limit 50
  start hog "$REDIS_CLI" -s "$REDIS_SOCK" EVAL 'while true do end' 0
  network forge 'BUSY\x20Redis' 'BUSY\x20\x1b[2J...'
  wait_for_text 'BUSY' "$T/watch.out"
  cli SCRIPT KILL
  [[ $(<"$T/watch.out") != *$'\e'* ]] || fail "$(<"$T/watch.out")"
}

@test "a server whose list never ends, or is too long, is cut short" {
  local mode PATIENCE=60 # it reads 128 MB in the end
  for mode in stuck odd flood; do
    start_fake "$mode"
    is_sanitized || ulimit -v 1000000
    try status --redis-timeout 20
    exits 69
    same "$OUT" ''
    [[ $mode == flood ]] || contains "$ERR" 'the answer to SCAN makes no sense'
  done
  contains "$ERR" 'more than 128 MB about its locks; name the locks, or narrow --prefix'
}

@test "what a server says about locks is limited also where it has forgotten the script, and by what becomes of it" {
  local mode PATIENCE=60 # it reads more than 128 MB each time
  for mode in forgetting crowd; do
    start_fake "$mode"
    is_sanitized || ulimit -v 1000000
    try status --redis-timeout 60
    exits 69
    contains "$ERR" 'more than 128 MB about its locks'
  done
}
