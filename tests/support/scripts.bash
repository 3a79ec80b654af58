# For tests of the Lua scripts alone: they are called by redis-cli --eval, as the contract in their first lines says.

SHIFT='' STOPPED='' # seconds, see `source_of`
SOURCE=$BATS_TEST_DIRNAME/../../src/lock
LOCK=rlock:job QUEUE='{rlock:job}:queue' WAITERS='{rlock:job}:waiters' META='{rlock:job}:meta'
HISTORY='{rlock:job}:history' SEATS='{rlock:job}:seats' MARK='{rlock:job}:hold'
ENDED='{rlock:job}:ended:' # and a level or token: the key of what became of it
OWNER='owner-% host user 17 command-% note' # the six words, where % stands for its token

# source_of VERB: what rlock sends for it; SHIFT sets its clock forward, in seconds; STOPPED is a time at which it stands
source_of() {
  if [[ -n $SHIFT$STOPPED ]]; then
    cat <<END
local real = redis
local redis = setmetatable({call = function(name, ...)
  local reply = real.call(name, ...)
  return name == 'TIME' and {${STOPPED:-reply[1] + $SHIFT}, reply[2] ${STOPPED:+* 0}} or reply
end}, {__index = real})
END
  fi
  rlock __script "$1"
}

# prepare VERB: sets SCRIPT to its file, made once for all tests, and OUTCOMES to the outcomes in its contract
prepare() {
  local made
  SCRIPT=$BATS_RUN_TMPDIR/$1$SHIFT-$STOPPED.lua
  if [[ ! -e $SCRIPT ]]; then
    made=$(mktemp "$BATS_RUN_TMPDIR/XXXXXX")
    sed -n '/^-- ->/,/^[^-]/p' "$SOURCE/$1.lua" | grep -ow '[a-z]*' >"$made"
    mv "$made" "$SCRIPT.outcomes"
    source_of "$1" >"$made"
    mv "$made" "$SCRIPT"
  fi
  mapfile -t OUTCOMES <"$SCRIPT.outcomes"
}

keys_of() { # VERB ARG...: sets KEYS
  KEYS=("$LOCK" "$QUEUE" "$WAITERS" "$META" "$HISTORY" "$SEATS")
  case $1 in
    acquire | release | cancel | recall) KEYS+=("$ENDED${3#\*}" "$ENDED$2") ;;
    hold) KEYS+=("$MARK") ;;
    renew) KEYS=("$LOCK") ;;
  esac
}

# call VERB ARG...: sets REPLY; its first word is an outcome that the script's contract names
call() {
  keys_of "$@"
  prepare "$1"
  mapfile -t REPLY < <(cli --eval "$SCRIPT" "${KEYS[@]}" , "${@:2}")
  step
  [[ ${REPLY[0]} == OOM* || " ${OUTCOMES[*]} " == *" ${REPLY[0]} "* ]] ||
    fail "the contract of $1.lua does not know ${REPLY[*]@Q}"
}

owner() { echo "${OWNER//%/$1}"; } # TOKEN

# acquire TOKEN [OPTION...]: as [LEVEL= CAPACITY= TTL= HOW= TICKET= WAITED= MAX_LEASE=] say
acquire() {
  local token=$1
  shift
  call acquire "$token" "${LEVEL:-level-$token}" "${CAPACITY:-1}" "${TTL:-30000}" "${HOW:-once}" "${TICKET:-}" \
    "${WAITED:-0}" "${OWNER//%/$token}" "${MAX_LEASE:-0}" "$@"
}

# grants_in_quorum TOKEN [OPTION...]: as a server of a quorum does once it has been up for long enough
grants_in_quorum() {
  MAX_LEASE=1 acquire "$@" || return
  [[ ${REPLY[0]} == granted ]]
}

# hold TOKEN [OPTION...]: acquires the lock, and renews the lease to its full length
hold() {
  acquire "$@"
  outcome granted
  FENCE=${REPLY[1]}
  call renew "$1" "${TTL:-30000}" "${LEVEL:-level-$1}"
  outcome extended
}

# enqueue TOKEN [OPTION...]: asks as a waiter that does not listen, with its ticket if it has one already
enqueue() {
  HOW=queue TICKET=${TICKETS[$1]:-} acquire "$@" || return
  TICKETS[$1]=${REPLY[2]}
  ASKED[$1]=${REPLY[7]}
  [[ ${REPLY[0]} != foreign ]] || ASKED[$1]=${REPLY[6]}
  bear_with "$1"
}

# bear_with TOKEN: its waiter may ask again half a minute later than it was told, since a busy machine may take seconds
# for what a test does meanwhile
bear_with() {
  cli EVAL "local text = redis.call('HGET', KEYS[1], ARGV[1])
    local words, alive, rest = (text or ''):match('^(%d+ %d+ )(%d+)(.*)\$')
    if alive then redis.call('HSET', KEYS[1], ARGV[1], string.format('%s%.0f%s', words, alive + 30000, rest)) end" \
    1 "$WAITERS" "$1" >/dev/null
}

channel_of() { echo "{rlock:job}:wake:level-$1"; } # TOKEN

# listen TOKEN...: subscribes somebody to their channels
listen() {
  local token
  for token; do
    start "ear-$token" "$REDIS_CLI" -s "$REDIS_SOCK" SUBSCRIBE "$(channel_of "$token")"
    wait_for_text subscribe "$T/ear-$token.out"
  done
}

start_scripts() { # from setup
  hermetic
  start_redis
  declare -gA TICKETS=() ASKED=()
  BEGAN=$(server_ms)
  STEPPED=${EPOCHREALTIME/./} SLOWEST=0
}

# step: measures how long the slowest step of this test took, in us
step() {
  local now=${EPOCHREALTIME/./}
  ((now - STEPPED <= SLOWEST)) || SLOWEST=$((now - STEPPED))
  STEPPED=$now
}

# A grant lasts five seconds, and a waiter may be dead after one, so a test that took long, or one of whose steps did, may
# fail without a bug. Then bats does it again, on a new server, as often as this says.
teardown() {
  clean_up || return 1
  ((SLOWEST < 200000 && ${EPOCHREALTIME/./} - BEGAN * 1000 < 4000000)) || BATS_TEST_RETRIES=4
}

replies() { same "${REPLY[*]}" "$*"; }

outcome() { same "${REPLY[0]}" "$1"; }

# between LOW VALUE HIGH
between() { (($1 <= $2 && $2 <= $3)) || fail "$2 is not between $1 and $3: ${REPLY[*]@Q}"; }

server_ms() { cli TIME | { read -r seconds && read -r us && echo $((seconds * 1000 + us / 1000)); }; }

# nearly MS VALUE: VALUE is what is left of MS that began during this test, which may take long on a busy machine
nearly() { between $(($1 - ($(server_ms) - BEGAN))) "$2" "$1"; }

is_granted() { # TOKEN: holds
  outcome granted
  same "$(cli HEXISTS "$LOCK" "$1")" 1
}

told() { sed -n '/^message$/{n;n;p;}' "$T/ear-$1.out" | xargs; } # TOKEN: all messages to it

# hears TOKEN MS: it was told to ask again in MS, and nothing else
hears() {
  wait_until "$PATIENCE" grep -qx message "$T/ear-$1.out"
  same "$(told "$1")" "$2"
}

# is_handed TOKEN [MS]: it has the lock and was told so, before that to ask again in MS if given
is_handed() {
  local fence proof
  wait_until "$PATIENCE" grep -q ^granted "$T/ear-$1.out"
  fence=$(fence_of "$1")
  proof=$(printf %s "$1:$fence" | sha1sum | cut -d ' ' -f 1)
  step # the lock that it was handed lasts five seconds
  matches "$(told "$1")" "^${2:+$2 }granted $fence $(field_of "$1" 6) 5000 ${ASKED[$1]} [0-9]+ $proof$"
}

# field_of TOKEN FIELD: of its record, in the order that record.lua describes
field_of() { cli HGET "$LOCK" "$1" | cut -d ' ' -f "$2"; }

fence_of() { field_of "$1" 5; } # TOKEN

floor() { cli HGET "$META" state | cut -d ' ' -f 1; } # the last fence given

remember_floor() { cli HSET "$META" state "$1 0 ${2:-0} 0 0"; } # FLOOR [WAITED]

hears_nothing() { # TOKEN...: no messages came for them, not even late: all that was published before has arrived
  local token
  for token; do
    cli PUBLISH "$(channel_of "$token")" end >/dev/null
    hears "$token" end
  done
}

fact() { printf '%s\n' "${REPLY[@]}" | grep "^$1 "; } # KIND: those facts of the last status

counts_levels() { # COUNT: the only holder has that many
  call status
  same "$(fact holder | awk '{print $7}')" "$1"
}

order() { cli ZRANGE "$QUEUE" 0 -1 | xargs; }

history() { cli LRANGE "$HISTORY" 0 -1; }

ends() { history | cut -d ' ' -f 6 | xargs; } # how the acquisitions of the history ended, oldest first

holders() { cli HKEYS "$LOCK" | grep -cvxE 'rlock|seen|slots'; } # how many records the lock has

# crowd UNTIL_MS [COUNT]: as many holders, by default so many that their words are more than Lua passes as arguments,
# with the fences 1 to COUNT, and with the leases and numbered slots that TTL and CAPACITY say, as for `acquire`; nothing
# else is known of the lock
crowd() {
  cli EVAL "for i = 1, ARGV[5] do
    redis.call('HSET', KEYS[1], 'rlock', ARGV[4], 't' .. i,
      table.concat({ARGV[1], 0, ARGV[6], 0, i, ARGV[4] == '0' and 0 or i - 1, ARGV[2], 0, 1, 'l' .. i, ARGV[3]}, ' '))
  end" 1 "$LOCK" "$1" "$BEGAN" "$(owner t)" "${CAPACITY:-0}" "${2:-9000}" "${TTL:-30000}" >/dev/null
}
