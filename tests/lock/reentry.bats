# Runs inside runs: a run that holds a lock already does not wait for itself, and this lets nobody else in.

load ../support/helpers

# The number of levels of the lock job, as seen from inside.
COUNT='rlock status job --json | jq .[0].holders[0].count'

has_levels() { [[ $(rlock status job --json | jq '.[0].holders[0].count') == "$1" ]]; }

@test "A inside B inside A does not wait for itself, and the levels are counted correctly" {
  try run --key job -- sh -c "$COUNT
    rlock run --key other -- rlock run --key job -- sh -c '
      $COUNT
      rlock run --key job -n -- sh -c \"$COUNT\"
      $COUNT'
    $COUNT"
  exits 0
  same "$(xargs <<<"$OUT")" '1 2 3 2 1'
  same "$ERR" ''
  absent rlock:job
  absent rlock:other
}

@test "a nested run has the same token and fence, and a slot has the same number" {
  local show='echo "$RLOCK_KEY $RLOCK_TOKEN $RLOCK_FENCE $RLOCK_SLOT"'
  try acquire job --slots 3
  try run --key job --slots 3 -- sh -c "$show; rlock run --key job --slots 3 -- sh -c '$show'"
  exits 0
  matches "$OUT" '^job [0-9a-f]{32} [0-9]+ 1'
  same "${OUT%$'\n'*}" "${OUT#*$'\n'}"
}

@test "RLOCK_HELD has each lock once, the innermost first" {
  try run --key a -- rlock run --key b -- rlock run --key a -- sh -c 'echo "$RLOCK_HELD"'
  exits 0
  matches "$OUT" '^a=[0-9a-f]{32} b=[0-9a-f]{32}$'
}

@test "names with spaces, percent and equals signs are told apart" {
  local name='100% a=b c'
  try run --key "$name" -- rlock run --key other -- rlock run --key "$name" -n -- true
  exits 0
  try run --key "$name" -- rlock run --key '100% a' -n -- true
  exits 0
}

@test "renewals go on at every level, whichever renews more slowly" {
  local ttl
  for ttl in '2 8' '8 2'; do
    try run --key job --ttl "${ttl% *}" -- rlock run --key job --ttl "${ttl#* }" -- \
      sh -c "sleep 2.4; $REDIS_CLI -s $REDIS_SOCK EXISTS rlock:job"
    exits 0
    same "$OUT$ERR" 1
    absent rlock:job
  done
}

@test "a run inside what a plain acquire took is dead before a forced release lets the next one in" {
  local next
  start inner bash -c 'eval "$(rlock acquire job --output shell)"; exec rlock run job --kill-after 1s -- sh -c "$1" "$0"' \
    "$T/inner" 'trap : TERM; echo $$ >"$0"; while :; do sleep .02; done'
  wait_until "$PATIENCE" test -s "$T/inner"
  start next rlock run job -- sh -c '! kill -0 "$(cat "$0")" || echo overlap' "$T/inner"
  next=$PID
  wait_for_text 'waiting for job' "$T/next.err"
  try release job --force
  exits 0
  contains "$OUT" 'job: evicted '
  finish "$next"
  exits 0
  same "$(<"$T/next.out")" ''
}

@test "a run that shares a long lease hears of a forced release at once, not at its first renewal" {
  start inner bash -c 'eval "$(rlock acquire job --ttl 10m --output shell)"; exec rlock run job --ttl 3m -- sh -c "echo \$\$; exec sleep 600"'
  wait_until "$PATIENCE" test -s "$T/inner.out"
  try release job --force -w 20s
  exits 0
  finish "$PID"
  exits 76
}

@test "an inner run that ends when the lock is lost already does not decide how the outer one has ended" {
  try run job --once v42 -t 2s -- sh -c "rlock run job -- $REDIS_CLI -s $REDIS_SOCK DEL rlock:job; exec sleep 600"
  exits 76
  try run job --once v42 -- echo again
  same "$OUT" again
}

@test "when an inner run ends the outer one keeps its lock, and goes on renewing it" {
  start outer rlock run --key job --ttl 2 -- \
    sh -c "rlock run --key job --ttl 2 -- true; echo inner is over; until [ -e $T/over ]; do sleep .02; done"
  wait_for_text 'inner is over' "$T/outer.out"
  sleep 2.4
  try run --key job -n -- true
  exits 75
  touch "$T/over"
  finish "$PID"
  exits 0
  absent rlock:job
}

@test "an inner run that outlives the outer one keeps the lock" {
  start outer rlock run --key job --ttl 2 -- \
    sh -c "setsid rlock run --key job --ttl 2 -- sh -c 'touch $T/in; until [ -e $T/over ]; do sleep .02; done' &
      until [ -e $T/in ]; do sleep .02; done"
  finish "$PID"
  exits 0
  sleep 2.4
  try run --key job -n -- true
  exits 75
  touch "$T/over"
  wait_until 5 absent rlock:job
}

@test "an inner run of which the server has lost the level, as after a fail-over, joins again and keeps the lock" {
  local forget='local fields = redis.call("HGETALL", KEYS[1])
    for i = 1, #fields, 2 do
      local record, count = fields[i + 1]:gsub(",%x+:%d+", "")
      if count > 0 then redis.call("HSET", KEYS[1], fields[i], record) end
    end'
  start outer rlock run --key job --ttl 2 -- \
    sh -c "setsid rlock run --key job --ttl 2 -- sh -c 'touch $T/in; until [ -e $T/over ]; do sleep .02; done' &
      until [ -e $T/leave ]; do sleep .02; done"
  wait_until "$PATIENCE" test -e "$T/in"
  has_levels 2
  cli EVAL "$forget" 1 rlock:job
  wait_until "$PATIENCE" has_levels 2
  touch "$T/leave"
  finish "$PID"
  exits 0
  try run --key job -n -- true
  exits 75
  touch "$T/over"
  wait_until "$PATIENCE" absent rlock:job
}

@test "an inner run with --replicas is not started before they have what it holds" {
  try run job -- sh -c 'rlock run job --replicas 1:100ms -- echo ran; echo $?'
  exits 0
  same "$OUT" 75
  contains "$ERR" 'rlock: job not acquired: 0 of 1 replicas had it within 100ms'
  absent rlock:job
}

@test "an inner run that was killed does not keep the lock beyond its own lease" {
  start outer rlock run --key job --ttl 1 -- \
    sh -c "rlock run --key job --ttl 1 -- sleep 600 & sleep .5; kill -9 \$!; touch $T/killed; until [ -e $T/over ]; do sleep .02; done"
  wait_until "$PATIENCE" test -e "$T/killed"
  sleep 1.2 # its lease; the outer run is renewed meanwhile
  touch "$T/over"
  finish "$PID"
  exits 0
  same "$(grep -vE 'short for this network|: rlock was killed, and' "$T/outer.err")" '' # a busy machine; the inner run
  absent rlock:job
}

@test "when an inner run has just been killed, the outer one says that the lock is not free yet" {
  try run --key job -- sh -c 'rlock run --key job -- sleep 600 & sleep .5; kill -9 $!'
  exits 0
  contains "$ERR" 'rlock: job: a run inside this one still holds it, until that run ends or its lease runs out'
}

@test "a lock that a script took, and that a run inside it renews, is renewed by somebody and given up with that run" {
  eval "$(rlock acquire job --ttl 5s --output shell)"
  try status job --json
  query '.[0].holders[0].kept | not'
  start inner rlock run job -- sh -c 'echo ready; exec sleep 600'
  wait_for_text ready "$T/inner.out"
  try status job --json
  query '.[0].holders | length == 1 and .[0].kept and .[0].count == 2 and .[0].pid == null and (.[0].dead | not)'
  OUT=$(TERM=xterm NO_COLOR=1 script -qec 'rlock status job' /dev/null)
  contains "$OUT" '; a run inside it goes on, and renews it'
  try release job --force
  exits 0
  matches "$OUT" '^job: evicted .*, gone after '
  finish "$PID"
  exits 76
}

@test "a lock that an inner run keeps, when the outer one has ended, is held by no process that has died" {
  start outer rlock run --key job -- sh -c "rlock run --key job -- sh -c 'touch $T/in; exec sleep 600' & until [ -e $T/in ]; do sleep .02; done"
  finish "$PID"
  exits 0
  try status job --json
  query '.[0].holders | length == 1 and .[0].kept and .[0].count == 1 and .[0].pid == null'
  try status job
  matches "$OUT" $'\njob +x +[^ ]+ +- '
  try run job -n -- true
  exits 75
  matches "$ERR" 'held by .* \(no process\) "sh .*" for [^ ]+, lease [^ ]+ left$'
  try release job --force
  exits 0
  matches "$OUT" '^job: evicted .* \(no process\).*, gone after [0-4]\.' # it is told at once
}

@test "acquire inside a run of the same lock is refused: it would wait for itself" {
  try run --key job -- sh -c 'rlock acquire job; echo $?; rlock acquire -n job; echo $?; rlock acquire other >/dev/null; echo $?'
  exits 0
  same "$(xargs <<<"$OUT")" '64 75 0'
  contains "$ERR" 'rlock: job is held by the run or the script around this command'
  try run --key job -- env
  export RLOCK_PREFIX=rlock: RLOCK_HELD
  RLOCK_HELD=$(sed -n 's/^RLOCK_HELD=//p' <<<"$OUT") # of a run that is over
  try acquire job -w 5s
  exits 0
}

@test "acquire inside a run of the same lock is refused in every mode that the run does not share" {
  try run --key job -- sh -c 'rlock acquire -s job; echo $?; rlock acquire job --slots 3; echo $?'
  same "$(xargs <<<"$OUT")" '64 64'
  try run --key job --slots 3 -- sh -c 'rlock acquire -s job; echo $?; rlock acquire job --slots 2; echo $?
    rlock acquire job --slots 3 >"$0"; echo $?' "$T/token"
  same "$(xargs <<<"$OUT")" '64 64 0'
  try release job --token "$(<"$T/token")"
  try run --key job -s -- sh -c 'rlock acquire -s job >"$0"; echo $?; rlock acquire job; echo $?' "$T/token"
  same "$(xargs <<<"$OUT")" '0 64'
}

@test "siblings inside a run exclude each other" {
  try run --key job -- sh -c '
    for i in 1 2 3 4; do
      rlock run --key part -q -- sh -c "mkdir \"$0\" && sleep .05 && rmdir \"$0\"" &
      pids="$pids $!"
    done
    for pid in $pids; do wait $pid || exit 1; done' "$T/alone"
  exits 0
  same "$ERR" ''
}

@test "other runs wait as long as any level holds" {
  try run --key job -- rlock run --key job -- env -u RLOCK_HELD rlock run --key job -n -- true
  exits 75
}

# ---- an inherited token is believed only while it holds

@test "an inherited token that does not hold any more lets nobody in" {
  try run --key job --on-lost warn -- sh -c "
    $REDIS_CLI -s $REDIS_SOCK DEL rlock:job
    stranger=\$(RLOCK_HELD= rlock acquire job)
    rlock run --key job -n -- touch $T/ran
    echo \$?"
  same "${OUT##*$'\n'}" 75
  [[ ! -e $T/ran ]]
}

@test "an inherited token that does not hold any more is not used to take the lock anew" {
  try run --key job --on-lost warn -- sh -c "
    $REDIS_CLI -s $REDIS_SOCK DEL rlock:job >&2
    outer=\$RLOCK_TOKEN
    rlock run --key job -- sh -c '[ \$RLOCK_TOKEN != \$0 ] && echo anew' \$outer"
  same "$OUT" anew
  contains "$ERR" 'rlock: job: the lock around this run was released or lost; asking for it anew'
}

@test "a malformed or foreign RLOCK_HELD is not believed" {
  local held
  hold job
  for held in job job= job=x "job=$(printf '%032d' 0)" "%6aob=$(printf '%032d' 0)" '===' $'\xff\n'; do
    RLOCK_HELD=$held RLOCK_PREFIX=rlock: try run --key job -n -- true
    exits 75
  done
}

@test "a malformed entry of RLOCK_HELD does not hide a good one" {
  try run --key job -- sh -c 'RLOCK_HELD="job=x $RLOCK_HELD" rlock run --key job -n -- echo inner'
  exits 0
  same "$OUT" inner
}

@test "locks on another server or with another prefix are told apart" {
  local other
  other=$RLOCK_REDIS
  start_redis
  try run --key job -- rlock run --key job --redis "$other" -- sh -c "$COUNT"
  exits 0
  same "$OUT" 1
  try run --key job -- rlock run --key job --prefix app: -- sh -c "$COUNT"
  exits 0
  same "$OUT" 1
  try acquire job --prefix app:
  try run --key job -- rlock run --key job --prefix app: -n -- true
  exits 75
}

# ---- modes

@test "exclusive inside shared is refused at once, since it would wait for itself" {
  try run --key job --shared -- rlock run --key job -E 0 -- touch "$T/ran"
  exits 64
  contains "$ERR" 'held shared by an enclosing run, which a run inside it cannot hold exclusive: give both the same option'
  [[ ! -e $T/ran ]]
  absent rlock:job
}

@test "shared inside shared, and shared inside exclusive, are granted" {
  try run --key job --shared -- rlock run --key job --shared -- sh -c "$COUNT"
  exits 0
  same "$OUT" 2
  try run --key job -- rlock run --key job --shared -- rlock run --key job -- sh -c "$COUNT"
  exits 0
  same "$OUT" 3 # the lock stays exclusive
}

@test "a reader re-enters past a waiting writer" {
  start writer true
  try run --key job --shared -- sh -c "
    env -u RLOCK_HELD rlock run --key job -- touch $T/written 2>$T/writer.err &
    until grep -qs waiting $T/writer.err; do sleep .02; done
    rlock run --key job --shared -n -- test ! -e $T/written"
  exits 0
  wait_until 5 test -e "$T/written"
}

@test "another number of slots inside slots is refused with 64, and both numbers are named" {
  try run --key job --slots 3 -- rlock run --key job --slots 2 -- touch "$T/ran"
  exits 64
  contains "$ERR" 'slots 3'
  contains "$ERR" 'slots 2'
  try run --key job --slots 3 -- rlock run --key job -- touch "$T/ran" # others may hold the other two
  exits 64
  [[ ! -e $T/ran ]]
}

# ---- renew and release from inside

@test "renew from inside lengthens the lease of the run around it" {
  try run --key job --ttl 2 -- sh -c "rlock renew --ttl 60 && sleep 1 && $REDIS_CLI -s $REDIS_SOCK PTTL rlock:job"
  exits 0
  ((OUT > 50000)) || fail "$OUT" # the renewals since have not shortened it
  same "$ERR" ''
}

@test "release from inside frees the lock; the run goes on and exits with the command's status" {
  start outer rlock run --key job --ttl 1 -- \
    sh -c "rlock release; echo released; until [ -e $T/over ]; do sleep .02; done; exit 7"
  wait_for_text released "$T/outer.out"
  absent rlock:job
  try acquire job # now somebody else has it
  exits 0
  sleep 1 # a renewal finds it gone
  touch "$T/over"
  finish "$PID"
  exits 7
  same "$(cli HEXISTS rlock:job "$OUT")" 1
  contains "$(<"$T/outer.err")" 'job was released; the command goes on without it'
}

@test "release from inside an inner run frees all levels, and all runs go on" {
  try run --key job --ttl 1 -- sh -c "
    rlock run --key job -- sh -c 'rlock release; sleep 1; exit 3'
    echo \$?
    rlock run --key job -- sh -c '$COUNT'
    exit 5"
  exits 5
  same "$(xargs <<<"$OUT")" '3 1'
}

@test "a command that releases the lock and exits at once: the run has its status, and prints no warning" {
  try run --key job -- sh -c 'rlock release; exit 4'
  exits 4
  [[ $ERR != *'not ours'* ]] || fail "$ERR"
}

@test "a second release from inside finds nothing, and exits with 1" {
  try run --key job -- sh -c 'rlock release; rlock release; echo $?'
  exits 0
  same "$OUT" 1
}

@test "RLOCK_HELD names only the locks of this server" {
  local other=$RLOCK_REDIS
  start_redis
  try run --key one -- rlock run --key two --redis "$other" -- sh -c 'echo "$RLOCK_HELD"'
  exits 0
  matches "$OUT" '^two=[0-9a-f]{32}$'
}
