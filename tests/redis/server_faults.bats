# A server that answers with errors.

load ../support/helpers
load ../support/servers

held_on() { # [RUN-OPTION...]: a lock whose renewals are counted
  [[ "$*" == *--ttl* ]] || set -- --ttl 3s "$@"
  hold job -v --renew-every 200ms "$@"
  wait_until "$PATIENCE" renewed_more_than 1
}

ends_well() {
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(cli EXISTS rlock:job)" 0
}

refused() { # CAUSE [OPTION...]: 69, named, nothing started
  try run --key other "${@:2}" -- touch "$T/started"
  exits 69
  contains "$ERR" "$1"
  [[ ! -e $T/started ]]
}

# rides CAUSE: a run that waits has met the cause by now
rides() {
  start rider rlock run -v --key rider --wait 60s -- true
  RIDER=$PID
  wait_for_text "$1" "$T/rider.err"
}

rode_it_out() {
  finish "$RIDER"
  exits 0
}

@test "OOM: a held lock is renewed and released, but nothing new is acquired" {
  held_on
  cli CONFIG SET maxmemory 1 >/dev/null
  still_renewed
  refused OOM --wait 300ms
  [[ $ERR != *script* ]] || fail "$ERR"
  try release job --token "$(tr '\0' '\n' </proc/"$(pgrep -P "$(pgrep -P "$HOLDER")")"/environ | sed -n s/RLOCK_TOKEN=//p)"
  exits 0
  ends_well
}

@test "OOM: a run inside a run of the same lock starts at once, and the outer one ends well" {
  mkfifo "$T/go"
  start outer rlock run --key job -- sh -c 'touch "$0"; read -r _ <"$1"; exec rlock run --key job -- touch "$2"' \
    "$T/outer" "$T/go" "$T/inner"
  wait_until "$PATIENCE" test -e "$T/outer"
  cli CONFIG SET maxmemory 1 >/dev/null
  echo >"$T/go"
  finish "$PID"
  exits 0
  [[ -e $T/inner ]]
  same "$(<"$T/outer.err")" ''
  absent rlock:job
}

@test "OOM: a waiter rides out a short one" {
  hold job
  start waiter rlock run --key job -- true
  wait_until "$PATIENCE" waiting 1
  cli CONFIG SET maxmemory 1 >/dev/null
  cli PUBLISH "$(cli PUBSUB CHANNELS '*' | head -1)" 0 >/dev/null
  cli PUBLISH "$(cli PUBSUB CHANNELS '*' | tail -1)" 0 >/dev/null
  wait_for_text OOM "$T/waiter.err"
  cli CONFIG SET maxmemory 0 >/dev/null
  waiter_has_its_turn
}

@test "OOM: a run that waits through a long one says so in spite of --quiet" {
  cli CONFIG SET maxmemory 1 >/dev/null
  start waiter rlock run --key job -q --redis-timeout 100ms -- true
  wait_for_text 'now; trying again' "$T/waiter.err"
  matches "$(<"$T/waiter.err")" '^rlock: job: [^ ]+ OOM .*, for 1[0-9.]*s now; trying again$'
  cli CONFIG SET maxmemory 0 >/dev/null
  finish "$PID"
  exits 0
}

@test "MISCONF: retried within the time allowed, and named" {
  held_on --ttl 15s
  mkdir "${REDIS_SOCK%/*}/dump.rdb" # so that no file can be put there
  cli CONFIG SET save "1 1" >/dev/null
  cli SET a b >/dev/null
  cli BGSAVE >/dev/null
  wait_until "$PATIENCE" refuses_to_write
  refused MISCONF --wait 300ms
  rides MISCONF
  contains "$(<"$T/holder.err")" "cannot renew job: "
  cli CONFIG SET stop-writes-on-bgsave-error no >/dev/null
  rode_it_out
  still_renewed
  ends_well
  cli CONFIG SET save '' >/dev/null # a server that cannot save does not end on TERM
}

@test "BUSY: waited for, and named if it does not end" {
  cli CONFIG SET lua-time-limit 50 >/dev/null
  held_on --ttl 15s
  start hog "$REDIS_CLI" -s "$REDIS_SOCK" EVAL 'while true do end' 0
  wait_until "$PATIENCE" is_busy
  refused BUSY --wait 300ms
  start waiter rlock run --key other -- echo ran
  wait_for_text "BUSY" "$T/waiter.err"
  cli SCRIPT KILL >/dev/null
  finish "$PID"
  exits 0
  still_renewed
  ends_well
}

is_busy() { [[ $(cli PING) == BUSY* ]]; }

@test "LOADING: waited for, and named if it does not end; with an AOF the lock outlives the restart" {
  local n
  stop_redis
  start_redis --appendonly yes --appendfsync always --rdbcompression no
  held_on --ttl 15s
  for n in {1..400}; do echo "SET filler$n $(printf '%01024d' 0)"; done | cli >/dev/null
  cli BGREWRITEAOF >/dev/null # a server answers while it loads only if it loads an RDB, such as the base of an AOF
  wait_until "$PATIENCE" is_rewritten
  kill -KILL "$REDIS_PID"
  wait_until "$PATIENCE" gone "$REDIS_PID"
  reopen --appendonly yes --appendfsync always --key-load-delay 50000 --loading-process-events-interval-bytes 1024
  refused LOADING --wait 500ms
  start waiter rlock run --key other -- echo ran
  wait_for_text LOADING "$T/waiter.err"
  wait_for_text LOADING "$T/holder.err"
  cli CONFIG SET key-load-delay 0 >/dev/null # it would take 20 s, so that no busy machine misses it
  finish "$PID"
  exits 0
  still_renewed
  ends_well
}

is_rewritten() { [[ $(cli INFO persistence) == *aof_rewrite_in_progress:0*aof_last_bgrewrite_status:ok* && -s ${REDIS_SOCK%/*}/appendonlydir/appendonly.aof.2.base.rdb ]]; }

# reopen OPTION...: starts the server again at its old port, without waiting for it
reopen() {
  local dir=${REDIS_SOCK%/*}
  : >"$dir/log" # what the earlier server said must not be taken for this one's words
  "$REDIS_SERVER" --bind 127.0.0.1 --port "$REDIS_PORT" --unixsocket "$REDIS_SOCK" --dir "$dir" --save '' "$@" \
    >"$dir/log" 2>&1 3>&- 4>&- &
  REDIS_PID=$!
  SERVERS+=("$REDIS_PID")
  wait_until "$PATIENCE" grep -q 'Server initialized' "$dir/log"
}

@test "after a restart without persistence the lock is lost at the next renewal" {
  held_on
  stop_redis
  reopen
  finish "$HOLDER"
  exits 76
  contains "$(<"$T/holder.err")" 'lost job: it was released by force, deleted or taken over, or Redis has lost its data'
}

@test "when the server evicts the key the lock is lost at the next renewal" {
  held_on
  cli CONFIG SET maxmemory-policy allkeys-random >/dev/null
  cli CONFIG SET maxmemory 1 >/dev/null # less than an empty server uses, so that the next write evicts everything
  cli SET filler x || true
  cli CONFIG SET maxmemory 0 >/dev/null
  finish "$HOLDER"
  exits 76
  contains "$(<"$T/holder.err")" "lost job"
}

@test "scripts are loaded, so that they stay where many others are sent by EVAL" {
  local calls
  cli SCRIPT FLUSH >/dev/null
  cli CONFIG RESETSTAT >/dev/null
  try run --key job -- true
  exits 0
  calls=$(cli INFO commandstats)
  contains "$calls" 'cmdstat_script|load:'
  [[ $calls != *cmdstat_eval:* ]] || fail "$calls"
}

@test "a server without Lua is told as such" {
  start_fake lualess
  RLOCK_REDIS=redis://127.0.0.1:$FAKE_PORT try run --key job -- true
  exits 69
  contains "$ERR" "this server has no Lua: install its Lua module, or load it"
}

@test "NOREPLICAS: waited for, and named if it does not end" {
  held_on --ttl 15s
  cli CONFIG SET min-replicas-to-write 1 >/dev/null
  refused NOREPLICAS --wait 300ms
  start waiter rlock run --key other -- echo ran
  wait_for_text NOREPLICAS "$T/waiter.err"
  cli CONFIG SET min-replicas-to-write 0 >/dev/null
  finish "$PID"
  exits 0
  still_renewed
  ends_well
}

@test "NOSCRIPT after SCRIPT FLUSH disturbs nobody" {
  held_on
  cli SCRIPT FLUSH >/dev/null
  still_renewed
  cli SCRIPT FLUSH >/dev/null
  ends_well
  same "$(grep -c 'cannot' "$T/holder.err")" 0
}

@test "maxclients: waited for, and named" {
  held_on --ttl 15s
  mkfifo "$T/orders"
  exec 8<>"$T/orders"
  start only sh -c 'exec "$0" -s "$1" <"$2"' "$REDIS_CLI" "$REDIS_SOCK" "$T/orders"
  echo PING >&8
  wait_for_text PONG "$T/only.out"
  echo CONFIG SET maxclients 1 >&8
  echo CLIENT KILL TYPE normal SKIPME yes >&8
  echo CLIENT KILL TYPE pubsub >&8 # a holder listens
  wait_for_text "max number of clients" "$T/holder.err"
  refused "max number of clients" --wait 300ms
  RLOCK_PASSWORD=any refused "AUTH refused: ERR max number of clients" --wait 300ms
  [[ $ERR != *'the password is from'* ]] || fail "$ERR" # it is not to blame
  rides "max number of clients"
  echo CONFIG SET maxclients 100 >&8
  rode_it_out
  still_renewed
  ends_well
}

@test "connections that the server closes, as idle or by CLIENT KILL, are replaced without a word" {
  held_on
  cli CONFIG SET timeout 1 >/dev/null
  hold other -v --ttl 5s --renew-every 1900ms
  wait_until "$PATIENCE" renewed_more_than 1
  cli CLIENT KILL TYPE normal SKIPME yes >/dev/null
  still_renewed
  same "$(grep -c 'cannot' "$T/holder.err")" 0
}

@test "a CLIENT PAUSE shorter than the time allowed is ridden out" {
  held_on
  cli CLIENT PAUSE 600 ALL >/dev/null
  wait_for_text "is renewed again" "$T/holder.err"
  ends_well
}

@test "each outage begins with a retry at once, however long the pauses of the last one became" {
  held_on --ttl 10m
  cli CONFIG SET min-replicas-to-write 1 >/dev/null
  wait_until "$PATIENCE" failed_more_than 7
  cli CONFIG SET min-replicas-to-write 0 >/dev/null
  wait_for_text "is renewed again" "$T/holder.err"
  cli CONFIG SET min-replicas-to-write 1 >/dev/null
  wait_until "$PATIENCE" failed_again_twice
  cli CONFIG SET min-replicas-to-write 0 >/dev/null
  ends_well
  (($(first_pause_of_last_outage) < 400)) || fail "$(<"$T/holder.err")" # the pauses of the first one were longer
}

failed_more_than() { (($(grep -c 'renew: .*NOREPLICAS' "$T/holder.err") > $1)); } # COUNT

failures_of_last_outage() { sed '1,/is renewed again/d' "$T/holder.err" | grep 'renew: .*NOREPLICAS'; }

failed_again_twice() { (($(failures_of_last_outage | wc -l) >= 2)); }

first_pause_of_last_outage() { # in ms
  failures_of_last_outage | sed -nE '1,2s/^rlock: (..):(..):(..)\.(...) .*/\1 \2 \3 \4/p' |
    awk '{ ms[NR] = (($1 * 60 + $2) * 60 + $3) * 1000 + $4 } END { print (ms[2] - ms[1] + 86400000) % 86400000 }'
}

@test "a companion key of the wrong type is refused at once, without retries" {
  cli SET '{rlock:other}:meta' x >/dev/null
  refused WRONGTYPE
}

@test "a database that does not exist is refused at once" {
  RLOCK_REDIS=$RLOCK_REDIS/99 refused "SELECT refused: ERR DB index is out of range"
}

@test "MASTERDOWN: waited for, and named" {
  start_redis --replicaof 127.0.0.1 1 --replica-serve-stale-data no
  refused MASTERDOWN --wait 300ms
}
