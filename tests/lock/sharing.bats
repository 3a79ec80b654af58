# More than one holder: numbered slots, readers and writers, and one hot lock split into segments.

load ../support/helpers

setup() {
  hermetic
  start_redis
  declare -gA PIDS=()
}

# enter NAME OPTION...: a run that appends "+NAME RLOCK_SLOT" and stays until `leave NAME`
enter() {
  local name=$1
  shift
  start "$name" rlock run --key job "$@" -- \
    sh -c "echo +$name \${RLOCK_SLOT-none} >>$T/log; until [ -e $T/leave-$name ]; do sleep .02; done"
  PIDS[$name]=$PID
}

has_entered() { grep -qsx "+$1 .*" "$T/log"; }
entered() { wait_until "$PATIENCE" has_entered "$1"; } # NAME
waits() { wait_for_text 'waiting for job' "$T/$1.err"; } # NAME

queues() { # NAME: stands in the queue
  waits "$1"
  wait_until "$PATIENCE" is_queued "${PIDS[$1]}"
}


leave() { # NAME...
  local name
  for name; do touch "$T/leave-$name"; done
  for name; do
    finish "${PIDS[$name]}"
    exits 0
  done
}

# ---- slots

@test "slots: each holder has the lowest free number, in RLOCK_SLOT" {
  local name
  for name in a b c; do
    enter $name --slots 3
    entered $name
  done
  same "$(xargs <"$T/log")" '+a 0 +b 1 +c 2'
  try run --key job --slots 3 -n -- true
  exits 75
  enter d --slots 3
  queues d
  leave b
  entered d
  same "$(tail -1 "$T/log")" '+d 1'
  leave a
  enter e --slots 3
  entered e
  same "$(tail -1 "$T/log")" '+e 0'
  leave c d e
  absent rlock:job
}

@test "slots: when many leave, all waiters that fit are let in" {
  local name
  for name in a b c; do
    enter $name --slots 3
    entered $name
  done
  for name in d e f g; do
    enter $name --slots 3
    queues $name
  done
  leave a b c
  for name in d e f; do entered $name; done
  is_queued "${PIDS[g]}"
  leave d e f
  entered g
  leave g
}

@test "slots: acquire prints the number too" {
  try acquire job --slots 2 --output json
  jq -e '.slot == 0' "$T/out"
  try acquire job --slots 2 --output json
  jq -e '.slot == 1' "$T/out"
  try status job --json
  jq -e '.[0] | .mode == "slots" and .slots == 2 and ([.holders[].slot] | sort) == [0, 1]' "$T/out"
}

@test "slots: a run with another number or mode waits until all holders are gone, and its message says so" {
  local others
  enter a --slots 3
  entered a
  for others in '--slots 5' '--slots 2' '--slots 1' --shared --exclusive; do
    # shellcheck disable=SC2086 # an option and its value
    try run --key job $others -n -- touch "$T/ran"
    exits 75
    contains "$ERR" 'not acquired: held with --slots 3 by '
  done
  [[ ! -e $T/ran ]]
  enter b --slots 5
  queues b
  contains "$(<"$T/b.err")" "waiting for job, held with --slots 3 by "
  enter c --slots 3 # it came later
  queues c
  leave a
  entered b
  leave b
  entered c
  leave c
}

@test "slots: --slots is refused together with --shared" {
  refuses 64 --slots run --key job --slots 2 --shared -- true
  refuses 64 --slots run --key job --slots 2 --exclusive -- true
}

# ---- readers and writers

@test "a wave of readers is let in together" {
  local i
  enter writer
  entered writer
  for i in {1..5}; do
    # Each stays until all five are in.
    start "reader$i" rlock run --key job --shared -- \
      sh -c "touch $T/in$i; until set -- $T/in*; [ \$# = 5 ]; do sleep .02; done"
    PIDS[$i]=$PID
  done
  for i in {1..5}; do queues_pid "${PIDS[$i]}"; done
  leave writer
  for i in {1..5}; do
    finish "${PIDS[$i]}"
    exits 0
  done
}

queues_pid() { wait_until "$PATIENCE" is_queued "$1"; }

@test "a waiting writer holds back later readers" {
  enter reader --shared
  entered reader
  enter second --shared
  entered second # readers share
  enter writer
  queues writer
  enter late --shared
  queues late
  try run --key job --shared -n -- true
  exits 75
  contains "$ERR" ' left, and a writer waits'
  leave reader second
  entered writer
  is_queued "${PIDS[late]}"
  leave writer
  entered late
  leave late
  same "$(cut -d' ' -f1 "$T/log" | xargs)" '+reader +second +writer +late'
}

@test "a writer is refused while readers hold the lock, and readers while a writer holds it" {
  enter reader --shared
  entered reader
  try run --key job -n -- true
  exits 75
  contains "$ERR" 'not acquired: held shared by '
  leave reader
  enter writer
  entered writer
  try run --key job -s -n -- true
  exits 75
  leave writer
}

# ---- never more than allowed

# work NAME TIMES OPTION...: takes the lock TIMES times, and logs the beginning and end of each critical section
work() {
  local name=$1 times=$2
  shift 2
  start "$name" bash -c 'for ((i = 0; i < $0; ++i)); do "$@" || exit; done' "$times" rlock run --key job "$@" -- \
    bash -c 'echo "+ '"${name%[0-9]}"' ${RLOCK_SLOT-}" >>'"$T/log"'; sleep 0.0$((RANDOM % 4))
      echo "- '"${name%[0-9]}"' ${RLOCK_SLOT-}" >>'"$T/log"
  PIDS[$name]=$PID
}

all_finish() {
  local name
  for name in "${!PIDS[@]}"; do
    finish "${PIDS[$name]}"
    exits 0
  done
}

# The lines of the log are in the order of events, since every line is written by a holder.
@test "readers and writers at random: a writer is always alone, readers are not" {
  local i
  for i in {1..5}; do work "reader$i" 8 --shared; done
  for i in 1 2; do work writer$i 8; done
  all_finish
  awk '
    { in_[$2] += $1 "1" }
    in_["writer"] > 1 || in_["writer"] && in_["reader"] { print "line " NR ": " in_["writer"] " writers, " in_["reader"] " readers"; bad = 1 }
    in_["reader"] > most { most = in_["reader"] }
    END { if (NR != 112 || most < 2) { print NR " lines, at most " most " readers"; bad = 1 }; exit bad }' "$T/log"
}

@test "three slots and ten workers at random: never more than three hold, no slot twice, and all slots are used" {
  local i
  for i in {0..9}; do work "worker$i" 6 --slots 3; done
  all_finish
  awk '
    { all += $1 "1"; slot[$3] += $1 "1"; seen[$3] = 1 }
    all > 3 || slot[$3] > 1 || $3 !~ /^[012]$/ { print "line " NR ": " all " holders, slot " $3; bad = 1 }
    all > most { most = all }
    END { if (NR != 120 || most != 3 || length(seen) != 3) { print NR " lines, at most " most; bad = 1 }; exit bad }' "$T/log"
}

# ---- one hot lock split into segments

# The shop has a file for each segment, with the number of items left in it.
stock() { # SEGMENTS ITEMS
  local i
  mkdir -p "$T/shop"
  for ((i = 0; i < $1; ++i)); do echo $(($2 / $1)) >"$T/shop/stock_$(printf %02d $i)"; done
}

# Buyers go on to the next segment if one is in use, and do not come back to one that is sold out. A sale takes longer than
# it takes to find that a segment is in use; else the test would measure how fast programs start.
buyer() {
  cat >"$T/buyer" <<'END'
segments=(shop/*)
while ((${#segments[@]})); do
  i=$((RANDOM % ${#segments[@]}))
  key=${segments[i]}
  wait=0
  ((${#segments[@]} > 1)) || wait=60 # for the last segment
  rlock run --key "$key" -q -w $wait -E 200 -- sh -c '
    read -r left <"$0"
    [ "$left" -gt 0 ] || exit 100
    sleep .1
    echo $((left - 1)) >"$0"
    echo sold' "$key"
  case $? in
    0 | 200) ;;
    100) unset "segments[i]"; segments=("${segments[@]}") ;;
    *) exit 1 ;;
  esac
done
END
}

# shop SEGMENTS ITEMS: sells them all; sets HUNDREDTHS, the time for an item in 0.01 ms
shop() {
  local i begin
  stock "$1" "$2"
  PIDS=()
  begin=$(now_ms)
  for i in {1..8}; do
    start "buyer$i" sh -c "cd $T && exec bash buyer"
    PIDS[$i]=$PID
  done
  PATIENCE=300 all_finish
  HUNDREDTHS=$((($(now_ms) - begin) * 100 / $2))
  same "$(cat "$T/shop/"* | sort -u)" 0
  same "$(cat "$T"/buyer*.out | wc -l)" "$2"
  rm -r "$T/shop" "$T"/buyer*.out
}

@test "400 items in 20 segments sell down to exactly 0, and faster than behind one lock" {
  local one
  buyer
  shop 1 50
  one=$HUNDREDTHS
  shop 20 400
  echo "# one lock: $((one / 100)).$((one % 100)) ms for an item; 20 segments: $((HUNDREDTHS / 100)).$((HUNDREDTHS % 100)) ms" >&3
  is_sanitized || ((HUNDREDTHS * 3 < one * 2)) || fail "not faster by half"
}
