# rlock status: every fact about a lock, for people and for jq, and nothing that could fool a terminal.

# shellcheck disable=SC2016 # it is jq and sh that expand them

load helpers

# Nothing that a terminal would act on.
is_clean() { same "$(tr -d '[:print:]\n' <"$1" | wc -c)" 0; } # FILE

@test "without locks: a heading, an empty array, 0" {
  try status
  exits 0
  matches "$OUT" $'^KEY +STATE +HOLDER +PID +COMMAND +HELD +LEASE +FENCE +WAITING *$'
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
  matches "$OUT" $'\njob +held +deploy@web3 +'"$HOLDER"' +"?sleep 600"? .*[0-9]{16}'
  matches "$OUT" $'\nother +held '
  try status job
  exits 0
  same "$(wc -l <"$T/out")" 2
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

@test "a lock is free again after release and expiry" {
  try acquire job --ttl 500ms
  wait_until 5 absent rlock:job
  try status job
  exits 1
  try status
  exits 0
  same "$(wc -l <"$T/out")" 1
}

@test "only locks under the prefix are listed, and no key of ours beside them" {
  try acquire one
  try acquire two --prefix other:
  try status --json
  query '[.[].key] == ["one"]'
  try status --prefix other: --json
  query '[.[].key] == ["two"]'
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
  matches "$OUT" $'\njob +foreign .*token.*never'
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

@test "looking changes nothing" {
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

@test "bytes that are no UTF-8 leave the table clean and JSON valid" {
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

@test "no Redis there: 69, never free" {
  try status job --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
  contains "$ERR" 127.0.0.1:1
  try status --json --redis redis://127.0.0.1:1
  exits 69
  same "$OUT" ''
}
