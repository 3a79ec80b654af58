# The Lua scripts alone, through redis-cli --eval as the contract in their first lines says: every outcome, repeats,
# keys of other programs, dead waiters, a full memory.

load ../support/helpers

SOURCE=$BATS_TEST_DIRNAME/../../src/lock
LOCK=rlock:job QUEUE='{rlock:job}:queue' WAITERS='{rlock:job}:waiters' META='{rlock:job}:meta'

# call VERB ARG...: sets REPLY; its first word is an outcome that the script's contract names
call() {
  local verb=$1 keys=("$LOCK" "$QUEUE" "$WAITERS" "$META")
  shift
  [[ $verb != renew ]] || keys=("$LOCK")
  cat "$SOURCE/common.lua" "$SOURCE/$verb.lua" >"$T/$verb.lua"
  mapfile -t REPLY < <(cli --eval "$T/$verb.lua" "${keys[@]}" , "$@")
  [[ ${REPLY[0]} == OOM* ]] || sed -n '/^-- ->/,/^[^-]/p' "$SOURCE/$verb.lua" | grep -qw -- "${REPLY[0]}" ||
    fail "the contract of $verb.lua does not know ${REPLY[*]@Q}"
}

# acquire TOKEN: as [LEVEL= CAPACITY= TTL= HOW= TICKET= MIN_HOLD=] say
acquire() {
  call acquire "$1" "${LEVEL:-level-$1}" "${CAPACITY:-1}" "${TTL:-30000}" "${HOW:-once}" "${TICKET:-}" \
    "${MIN_HOLD:-0}" "wake:$1" "owner-$1" 0
}

# enqueue TOKEN [TICKET]: as a waiter that listens to nothing
enqueue() {
  HOW=queue TICKET=${2:-} acquire "$1" || return
  TICKETS[$1]=${REPLY[2]}
  ASKED[$1]=${REPLY[-1]}
}

# listen TOKEN...: somebody is at the other end of their channels
listen() {
  local token
  for token; do
    start "ear-$token" "$REDIS_CLI" -s "$REDIS_SOCK" SUBSCRIBE "wake:$token"
    wait_for_text subscribe "$T/ear-$token.out"
  done
}

setup() {
  hermetic
  start_redis
  declare -gA TICKETS=() ASKED=()
}

replies() { same "${REPLY[*]}" "$*"; }

outcome() { same "${REPLY[0]}" "$1"; }

server_ms() { cli TIME | { read -r seconds && read -r us && echo $((seconds * 1000 + us / 1000)); }; }

# left_of MS SINCE VALUE: VALUE is what is left of MS since SINCE, of server_ms, or since a later moment
left_of() { between $(($1 - ($(server_ms) - $2))) "$3" "$1"; }

# between LOW VALUE HIGH
between() { (($1 <= $2 && $2 <= $3)) || fail "$2 is not between $1 and $3: ${REPLY[*]@Q}"; }

is_granted() { # TOKEN: holds
  outcome granted
  same "$(cli HEXISTS $LOCK "$1")" 1
}

# hears TOKEN MS: was told so, and nothing else
hears() {
  wait_until "$PATIENCE" grep -qx message "$T/ear-$1.out"
  same "$(sed -n '/^message$/{n;n;p;}' "$T/ear-$1.out" | xargs)" "$2"
}

# is_handed TOKEN [MS]: has the lock, and was told so, after it was told to ask again in MS
is_handed() {
  wait_until "$PATIENCE" grep -q ^granted "$T/ear-$1.out"
  matches "$(sed -n '/^message$/{n;n;p;}' "$T/ear-$1.out" | xargs)" \
    "^${2:+$2 }granted $(cli HGET $LOCK "$1" | awk '{print $3, $4}') 1000 ${ASKED[$1]} [0-9]+$"
}

hears_nothing() { # TOKEN...: not even by now; what was published before this has been written by then
  local token
  for token; do
    cli PUBLISH "wake:$token" end >/dev/null
    hears "$token" end
  done
}

fact() { printf '%s\n' "${REPLY[@]}" | grep "^$1 "; } # KIND: of the last status

counts_levels() { # COUNT: of the only holder
  call status
  same "$(fact holder | awk '{print $7}')" "$1"
}

order() { cli ZRANGE "$QUEUE" 0 -1 | xargs; }

expired() { (($(cli PTTL $LOCK) < $1)); } # MS: so much is left of the lock at most

# ---- contracts

@test "every script begins with its contract" {
  local file verb
  for file in "$SOURCE"/*.lua; do
    verb=$(basename "$file" .lua)
    [[ $verb != common ]] || continue
    matches "$(head -1 "$file")" "^-- $verb: "
    for word in KEYS ARGV '->'; do
      sed '/^[^-]/,$d' "$file" | grep -q -- "^-- $word " || fail "$file does not tell $word"
    done
  done
}

# ---- acquire

@test "acquire: granted with a fence, slot 0 and the lease; the key lives as long" {
  local before after since
  since=$(server_ms)
  before=$(cli TIME | head -1)
  acquire a
  after=$(cli TIME | head -1)
  outcome granted
  between "${before}000000" "${REPLY[1]}" "$((after + 1))000000"
  same "${REPLY[*]:2}" '0 30000'
  same "$(cli HGET $LOCK rlock)" 1
  left_of 30000 "$since" "$(cli PTTL $LOCK)"
  same "$(cli KEYS '*' | sort | xargs)" "$LOCK $META" # a free lock is taken without a queue
  between 2591000000 "$(cli PTTL "$META")" 2592000000
}

@test "acquire: the same level again is answered the same, and counts once" {
  local first
  acquire a
  first=${REPLY[*]}
  acquire a
  replies "$first"
  HOW=queue acquire a
  replies "$first"
  counts_levels 1
  absent "$QUEUE"
}

@test "acquire: another level of the same token re-enters with the same fence, and lengthens the lease" {
  local fence
  acquire a
  fence=${REPLY[1]}
  LEVEL=inner HOW=reenter TTL=60000 acquire a
  same "${REPLY[*]::3}" "granted $fence 0"
  between 59000 "${REPLY[3]}" 60000
  LEVEL=innermost HOW=reenter TTL=1000 acquire a
  between 59000 "${REPLY[3]}" 60000 # never shortened
  counts_levels 3
}

@test "acquire: re-entry with a token that does not hold is lost, and takes nothing" {
  HOW=reenter acquire a
  replies lost
  acquire b
  HOW=reenter acquire a
  replies lost
  absent "$QUEUE"
}

@test "acquire: re-entry passes a queue" {
  acquire a
  listen b
  enqueue b
  LEVEL=inner HOW=reenter acquire a
  outcome granted
  same "$(order)" b
}

@test "acquire: busy tells how long to sleep, what is left of the lease, and who holds" {
  TTL=1900 acquire a
  acquire b
  same "${REPLY[0]} ${REPLY[2]} ${REPLY[6]}" 'busy  owner-a'
  between 1 "${REPLY[1]}" 1901
  between 0 "${REPLY[3]}" 1900
  between 1 "${REPLY[4]}" 1900
  same "${REPLY[5]}" 0
  absent "$QUEUE"
}

@test "acquire: another number of slots is a mismatch; readers and writers are none" {
  CAPACITY=3 acquire a
  for CAPACITY in 0 1 2 4; do
    acquire b
    replies mismatch 3
  done
  call release a '*' -
  CAPACITY=1 acquire a
  CAPACITY=2 acquire b
  replies mismatch 1
  CAPACITY=0 acquire b
  outcome busy
}

@test "acquire: re-entry is refused what its token does not hold" {
  CAPACITY=0 acquire a
  LEVEL=inner CAPACITY=1 HOW=reenter acquire a
  replies upgrade
  LEVEL=inner CAPACITY=2 HOW=reenter acquire a
  replies mismatch 0
  LEVEL=inner CAPACITY=0 HOW=reenter acquire a
  outcome granted
  call release a '*' -
  CAPACITY=2 acquire a
  LEVEL=inner CAPACITY=1 HOW=reenter acquire a # another may hold the second slot
  replies mismatch 2
  call release a '*' -
  acquire a
  LEVEL=inner CAPACITY=0 HOW=reenter acquire a # exclusive is more than shared
  outcome granted
}

@test "acquire: fences rise also when the last one is ahead of the clock, to the digit" {
  cli HSET "$META" floor 9007199254740000
  acquire a
  same "${REPLY[1]}" 9007199254740001
  call release a '*' -
  acquire b
  same "${REPLY[1]}" 9007199254740002
}

@test "acquire: slots are numbered from 0, the lowest free one first" {
  local token
  for token in a b c; do CAPACITY=3 acquire $token; done
  same "${REPLY[2]}" 2
  CAPACITY=3 acquire d
  outcome busy
  call release b level-b 0
  CAPACITY=3 acquire d
  same "${REPLY[2]}" 1
}

@test "acquire: the seat of a holder whose lease ended is free while others hold on" {
  CAPACITY=2 TTL=1000 acquire a
  CAPACITY=2 acquire b
  sleep 1.1
  call renew a 30000
  replies lost
  call release a level-a 0
  replies lost
  CAPACITY=2 acquire c
  same "${REPLY[2]}" 0
  same "$(cli HEXISTS $LOCK a)" 0
}

@test "acquire: --min-hold of an inner level counts too" {
  acquire a
  LEVEL=inner MIN_HOLD=20000 HOW=reenter acquire a
  call release a '*' -
  outcome cooling
}

# ---- release

@test "release: a level twice answers twice the same and leaves the others" {
  acquire a
  LEVEL=inner acquire a
  LEVEL=innermost acquire a
  call release a inner 0
  replies kept 2
  call release a inner 0
  replies kept 2
  call release a innermost 0
  replies kept 1
  call release a level-a 3
  replies released
  call release a level-a 3
  replies released
  absent $LOCK
  call status
  matches "$(fact last)" '^last [0-9]+ [0-9]+ [0-9]+ 3 owner-a$'
}

@test "release: lost for a stranger and for whoever has run out, and nothing changes" {
  local before
  call release a level-a 0
  replies lost
  acquire a
  before=$(dump $LOCK)
  call release b level-b 0
  replies lost
  call release b '*' -
  replies lost
  same "$(dump $LOCK)" "$before"
}

@test "release: of all levels leaves word for whoever believes in them" {
  acquire a
  LEVEL=inner acquire a
  call release a '*' -
  replies released
  matches "$(cli HGET "$META" released)" '^a:[0-9]+$'
  absent $LOCK
  acquire b
  call release b '*' -
  matches "$(cli HGET "$META" released)" '^b:[0-9]+ a:[0-9]+$'
}

@test "release: before the minimum hold is over it cools, and whatever asks then waits" {
  MIN_HOLD=20000 acquire a
  call release a level-a 0
  outcome cooling
  between 15000 "${REPLY[1]}" 20000
  between 15000 "$(cli PTTL $LOCK)" 20000
  call release a level-a 0
  outcome cooling
  call renew a 30000
  replies lost
  HOW=reenter acquire a
  replies lost
  acquire b
  same "${REPLY[0]} ${REPLY[6]}" 'busy owner-a'
  same "${REPLY[4]}" 0
  between 15000 "${REPLY[5]}" 20000
  call status
  outcome cooling
}

@test "release: the minimum hold outlasts the lease of a holder that crashed" {
  TTL=200 MIN_HOLD=20000 acquire a
  between 15000 "$(cli PTTL $LOCK)" 20000
  wait_until 5 acquire_cooling b
}

acquire_cooling() {
  acquire "$1" || return
  [[ ${REPLY[0]} == busy ]] && ((REPLY[5] > 10000))
}

@test "release: a minimum hold that is over is no hindrance" {
  MIN_HOLD=50 acquire a
  sleep 0.1
  call release a level-a 0
  replies released
}

# ---- renew

@test "renew: extends, never shortens, and touches the lock's own key alone" {
  local since
  TTL=20000 acquire a
  cli DEL "$META"
  since=$(server_ms)
  call renew a 60000
  outcome extended
  left_of 60000 "$since" "${REPLY[1]}"
  call renew a 1000
  left_of 60000 "$since" "${REPLY[1]}"
  left_of 60000 "$since" "$(cli PTTL $LOCK)"
  call renew b 1000
  replies lost
  same "$(cli KEYS '*')" $LOCK
}

@test "renew: the key lives as long as its longest holder" {
  local since
  since=$(server_ms)
  CAPACITY=0 TTL=60000 acquire a
  CAPACITY=0 TTL=10000 acquire b
  call renew b 20000
  left_of 60000 "$since" "$(cli PTTL $LOCK)"
  call release a level-a 0
  between 1 "$(cli PTTL $LOCK)" 20000
}

# ---- the queue

three_who_wait() {
  local last=0 token
  listen b c d
  TTL=1900 acquire a
  enqueue b
  between 1 "${REPLY[1]}" 1901
  enqueue c
  between 1001 "${REPLY[1]}" 2901
  enqueue d
  between 2001 "${REPLY[1]}" 3901
  for token in b c d; do
    ((TICKETS[$token] > last)) || fail "${TICKETS[$token]} after $last"
    last=${TICKETS[$token]}
  done
  same "$(order)" 'b c d'
  call renew a 30000
  enqueue b "${TICKETS[b]}"
  between 1900 "${REPLY[1]}" 2000
  between 100000 "$(cli PTTL "$QUEUE")" 120000
  between 100000 "$(cli PTTL "$WAITERS")" 120000
}

@test "queue: tickets rise, the head looks when the lease ends, those behind it later and later" {
  unless_late 1000 three_who_wait
}

@test "queue: tickets rise also when the last one is ahead of the clock" {
  acquire a
  listen b
  cli HSET "$META" ticket 9007199254740000
  enqueue b
  same "${TICKETS[b]}" 9007199254740001
}

@test "queue: who was wrongly dropped has its place again" {
  listen b c
  acquire a
  enqueue b
  enqueue c
  cli ZREM "$QUEUE" b
  cli HDEL "$WAITERS" b
  enqueue b "${TICKETS[b]}"
  same "$(order)" 'b c'
}

handed_to_the_head() {
  local fence
  listen b c
  acquire a
  enqueue b
  enqueue c
  call release a level-a 0
  is_handed b
  fence=$(cli HGET $LOCK b | cut -d ' ' -f 3)
  acquire d
  same "${REPLY[0]} ${REPLY[6]}" 'busy owner-b'
  between 1 "${REPLY[4]}" 1000
  between 1 "${REPLY[1]}" 1001
  call renew b 30000
  replies extended 30000
  enqueue b "${TICKETS[b]}"
  same "${REPLY[*]::2}" "granted $fence"
  same "$(order)" c
  hears c 1001 # when the lock is free should b have died
}

@test "queue: release hands the lock to the head alone, for a second" {
  unless_late 1000 handed_to_the_head
}

@test "queue: a waiter is told how long after its last question it was handed the lock" {
  local since
  listen b
  acquire a
  enqueue b
  sleep 0.3
  call release a level-a 0
  is_handed b
  since=$(grep ^granted "$T/ear-b.out" | awk '{print $NF}')
  between 300 "$since" "$(($(cli TIME | head -1) * 1000 + 1000 - ASKED[b]))"
}

@test "queue: a lock that is not confirmed within a second goes to the next" {
  listen b c
  acquire a
  enqueue b
  enqueue c
  call release a level-a 0
  wait_until 5 grants c
  absent "$QUEUE"
}

grants() {
  enqueue "$1" "${TICKETS[$1]}" || return
  [[ ${REPLY[0]} == granted ]]
}

@test "queue: who did not confirm in time, and asks again, holds beside others" {
  listen c
  CAPACITY=2 acquire a
  CAPACITY=2 acquire b
  CAPACITY=2 enqueue c
  call release b level-b 0
  is_handed c
  wait_until "$PATIENCE" alone # its second is over
  CAPACITY=2 enqueue c "${TICKETS[c]}"
  is_granted c
}

alone() {
  call status || return
  (($(fact holder | wc -l) == 1))
}

@test "queue: the next in line is told when the lock is free that another was handed, and no more" {
  listen b c
  acquire a
  enqueue b
  enqueue c
  call release a level-a 0
  TTL=1500 enqueue b "${TICKETS[b]}"
  is_granted b
  call renew b 30000
  LEVEL=inner acquire b
  call release b inner 0
  hears c 1001
}

@test "queue: who finds the head dead tells the next in line when to look" {
  listen b d
  acquire a
  enqueue d
  enqueue b
  kill "$PID"
  wait_until "$PATIENCE" deaf d
  acquire c
  outcome busy
  same "$(order)" b
  hears b 2000
}

deaf() { same "$(cli PUBSUB NUMSUB "wake:$1" | tail -1)" 0; } # TOKEN

@test "queue: who asks again without its ticket, since that reply was lost, is told the same one" {
  local ticket
  acquire a
  enqueue b
  ticket=${TICKETS[b]}
  enqueue b
  same "${TICKETS[b]}" "$ticket"
  same "$(cli ZSCORE "$QUEUE" b)" "$ticket"
}

@test "queue: a hundred dead waiters cost the release nothing but their removal" {
  local i
  listen z
  acquire a
  for i in {1..100}; do echo "ZADD $QUEUE $i dead$i"; done | cli >/dev/null
  for i in {1..50}; do echo "HSET $WAITERS dead$i '1 0 99999999999999 $i level wake:dead$i owner'"; done | cli >/dev/null
  enqueue z
  same "$(cli ZCARD "$QUEUE")" 1 # looking is enough
  for i in {1..100}; do echo "ZADD $QUEUE $i dead$i"; done | cli >/dev/null
  call release a level-a 0
  is_handed z
  absent "$QUEUE"
}

@test "queue: a newcomer takes a free lock whose waiters are all dead, and none is left behind" {
  local token
  acquire a
  for token in b c d; do enqueue $token; done
  call release a level-a 0
  absent "$QUEUE"
  acquire e
  is_granted e
  same "$(cli KEYS '*' | sort | xargs)" "$LOCK $META"
}

@test "queue: a waiter that has not been heard of since its sleep ended is dropped, though it listens" {
  listen b c
  acquire a
  enqueue b
  enqueue c
  cli HSET "$WAITERS" b "1 0 1000 ${TICKETS[b]} level-b wake:b owner-b"
  call release a level-a 0
  is_handed c
  hears_nothing b
}

@test "queue: who listens by pattern is no waiter" {
  acquire a
  start pattern "$REDIS_CLI" -s "$REDIS_SOCK" PSUBSCRIBE '*'
  wait_for_text psubscribe "$T/pattern.out"
  enqueue b
  call release a level-a 0
  absent "$QUEUE"
}

@test "queue: where the server does not say who listens, all are taken for alive" {
  cli ACL SETUSER default -pubsub -publish || skip "this server has no ACL"
  acquire a
  enqueue b
  call release a level-a 0
  replies released
  absent "$QUEUE"
  acquire c
  same "${REPLY[0]} ${REPLY[6]}" 'busy owner-b'
}

@test "queue: a record of a waiter that cannot be read is dropped" {
  listen b
  acquire a
  enqueue b
  cli ZADD "$QUEUE" 1 x
  cli HSET "$WAITERS" x garbage
  call release a level-a 0
  is_handed b
  absent "$QUEUE"
}

@test "queue: readers are handed it together, up to the first writer" {
  local token
  listen b c d e
  acquire a
  for token in b c e; do CAPACITY=0 enqueue $token; done
  cli ZREM "$QUEUE" e
  enqueue d # a writer
  CAPACITY=0 enqueue e
  call release a level-a 0
  is_handed b
  is_handed c
  hears_nothing e
  CAPACITY=0 acquire f # as a newcomer: no passing of the writer
  outcome busy
  same "$(order)" 'd e'
}

@test "queue: all that fit into the free slots are handed them" {
  local token
  listen c d e
  for token in a b; do CAPACITY=2 acquire $token; done
  for token in c d e; do CAPACITY=2 enqueue $token; done
  call release a level-a 0
  call release b level-b 0
  is_handed c
  is_handed d 1001 # when the slot that c was handed is free
  matches "$(sed -n '/^message$/{n;n;p;}' "$T/ear-e.out" | xargs)" '^[0-9]{3,4}( [0-9]{3,4})*$' # what was handed over is free first
}

@test "queue: whose slots do not match any more leaves, and the next is told" {
  listen b c
  CAPACITY=2 acquire a
  CAPACITY=1 HOW=queue acquire x # a writer that joined while the lock was free
  replies mismatch 2
  cli ZADD "$QUEUE" 1 b
  cli HSET "$WAITERS" b '1 0 99999999999999 1 level-b wake:b owner-b'
  CAPACITY=2 enqueue c
  outcome busy
  CAPACITY=1 enqueue b 1
  replies mismatch 2
  is_handed c
}

# ---- cancel

@test "cancel: leaves the queue, and passes on what it was handed" {
  listen b c
  acquire a
  enqueue b
  enqueue c
  call release a level-a 0
  is_handed b
  call cancel b level-b
  replies cancelled
  is_handed c 1001
  call cancel c level-c
  call cancel c level-c
  replies cancelled
  absent "$QUEUE"
  absent "$WAITERS"
  absent $LOCK
}

@test "cancel: gives back a grant that was not used, which does not cool, and no other level" {
  listen b
  MIN_HOLD=20000 acquire a
  LEVEL=inner acquire a
  enqueue b
  call cancel a inner
  call cancel a inner
  call cancel a stranger
  counts_levels 1
  call renew a 30000
  outcome extended
  call cancel a level-a
  replies cancelled
  same "$(cli HEXISTS $LOCK a)" 0
  is_handed b '2000 2000 2000'
}

# ---- force

@test "force: evicts the holder, or only that of a fence, and the next has it" {
  local fence
  listen b
  call force ''
  replies free
  acquire a
  fence=${REPLY[1]}
  enqueue b
  call force $((fence + 1))
  replies free
  call force "$fence"
  replies evicted owner-a
  is_handed b
  call renew a 30000
  replies lost
}

@test "force: evicts all holders, cooling ones too" {
  local token
  for token in a b c; do CAPACITY=0 MIN_HOLD=20000 acquire $token; done
  call release b level-b 0
  outcome cooling
  call force ''
  same "$(printf '%s\n' "${REPLY[@]}" | sort | xargs)" 'evicted owner-a owner-b owner-c'
  absent $LOCK
  call status
  same "$(fact forced)" 'forced 3'
}

# ---- status

@test "status: every fact, and it writes nothing" {
  local before
  call status
  same "${REPLY[0]} ${#REPLY[@]}" 'free 3'
  absent "$META"
  listen b
  acquire a
  LEVEL=inner acquire a
  CAPACITY=0 enqueue b
  before=$(cli KEYS '*' | sort; dump $LOCK; dump "$META")
  call status
  same "${REPLY[0]} ${REPLY[2]}" 'held 1'
  same "$(fact capacity)" 'capacity 1'
  matches "$(fact holder)" '^holder [0-9]+ [0-9]+ [0-9]+ 0 [0-9]+ 2 owner-a$'
  same "$(fact waiter)" "waiter 0 ${TICKETS[b]} owner-b"
  same "$(fact last)" '' # none has ended yet
  same "$(fact acquired)" 'acquired 1'
  same "$(cli KEYS '*' | sort; dump $LOCK; dump "$META")" "$before"
}

# ---- other programs' keys

foreign_keys() { # each is made, and met by `$@`
  local make
  for make in 'SET _ token' 'SET _ token PX 90000' 'RPUSH _ a b' 'SADD _ a b' 'ZADD _ 1 a' 'HSET _ 4d9e:1 2' \
    'HSET _ rlock other'; do
    cli FLUSHALL >/dev/null
    # shellcheck disable=SC2086 # a command and its arguments
    cli ${make//_/$LOCK} >/dev/null
    echo "with $make:" # shown where it fails
    "$@"
  done
}

is_respected() {
  local before
  before=$(dump $LOCK)
  acquire a
  outcome foreign
  same "${REPLY[3]}" "$(cli TYPE $LOCK)"
  same "${REPLY[4]}" "$(cli GET $LOCK 2>&1 | grep -v WRONGTYPE || true)"
  between "$(cli PTTL $LOCK)" "${REPLY[5]}" 90000
  enqueue b
  outcome foreign
  call renew a 30000
  replies lost
  call release a level-a 0
  replies lost
  call release a '*' -
  replies lost
  call status
  outcome foreign
  same "$(fact type)" "type $(cli TYPE $LOCK)"
  call force 17
  replies free
  call cancel b level-b
  replies cancelled
  same "$(dump $LOCK)" "$before"
  absent "$QUEUE"
}

@test "keys of other programs, of whatever type, are held and never modified" {
  foreign_keys is_respected
}

is_deleted() {
  listen b
  enqueue b
  call force ''
  same "${REPLY[0]} ${REPLY[1]}" "foreign $1"
  is_handed b
}

@test "keys of other programs are deleted by force, and the next has the lock" {
  cli SET $LOCK token
  is_deleted 'string'
}

@test "behind a key of another program only the first in line polls, and the dead are dropped" {
  local token
  listen e f
  cli SET $LOCK token
  for token in b c d e f; do enqueue $token; done
  same "$(order)" 'e f' # whoever looked has dropped those ahead
  enqueue e "${TICKETS[e]}"
  between 1 "${REPLY[1]}" 101
  enqueue f "${TICKETS[f]}"
  between 1001 "${REPLY[1]}" 1101
  call cancel e level-e
  hears f 101
}

# ---- a full memory

without_memory() {
  local token
  listen d
  MIN_HOLD=20000 CAPACITY=3 acquire a
  CAPACITY=3 acquire b
  LEVEL=inner CAPACITY=3 acquire b
  CAPACITY=3 acquire c
  CAPACITY=3 enqueue d
  cli CONFIG SET maxmemory 1
  CAPACITY=3 acquire e
  outcome busy # looking is allowed
  HOW=queue CAPACITY=3 acquire e
  matches "${REPLY[*]}" ^OOM
  HOW=queue CAPACITY=3 TICKET=${TICKETS[d]} acquire d
  matches "${REPLY[*]}" ^OOM
  for token in a b c; do
    call renew $token 60000
    outcome extended
  done
  call release b inner 0
  replies kept 1
  call release b level-b 0
  replies released
  is_handed d
  HOW=queue CAPACITY=3 TICKET=${TICKETS[d]} acquire d
  is_granted d
  call release d level-d 0
  call release c '*' -
  replies released
  call release a level-a 0
  outcome cooling
  between 15000 "$(cli PTTL $LOCK)" 20000
  call force ''
  replies evicted owner-a
  absent $LOCK
  LOCK=rlock:other acquire a # of a lock that is free
  matches "${REPLY[*]}" ^OOM
}

@test "without memory acquire is refused, and whoever holds can renew and release" {
  unless_late 1000 without_memory
}
