# --first: to the head of the queue; and release --force, which says who is next, or sees to it that nobody is.

load ../support/helpers

# waits NAME OPTION...: a run that waits for job, and then adds its name to $T/order
waits() {
  start "$1" rlock run job --holder "$1" "${@:2}" -- sh -c 'echo "$1" >>"$0"' "$T/order" "$1"
  wait_for_text 'waiting for job' "$T/$1.err"
}

@test "--first goes to the head of the queue, behind others with --first" {
  hold job
  waits third
  third=$PID
  waits first --first
  waits second --first
  same "$(rlock status job --json | jq -c '.[0].waiters | map([.holder, .first])')" \
    '[["first",true],["second",true],["third",false]]'
  rlock status job --json | jq -e '.[0].waiters | all(.waiting_ms < 60000)'
  contains "$(rlock status job)" '3 (first, --first)'
  stop "$HOLDER"
  finish "$third"
  exits 0
  same "$(xargs <"$T/order")" 'first second third'
}

@test "release --force says who is next" {
  hold job
  waits deploy@db3
  next=$PID
  try release job --force
  exits 0
  contains "$OUT" 'gone after'
  same "$(sed -n 2p "$T/out")" "next: deploy@db3 pid $next"
  finish "$next"
  exits 0
}

@test "release --force --hold evicts the holder, and nobody is next" {
  hold job
  waits waiter
  next=$PID
  try release job --force --hold 1h
  exits 0
  matches "$(sed -n 1p "$T/out")" '^job: on hold until [0-9-]+ [0-9:]+ by '
  contains "$(sed -n 2p "$T/out")" 'gone after'
  same "$(wc -l <"$T/out")" 2
  absent rlock:job
  same "$(rlock status job --json | jq -c '.[0] | [.waiting, .hold.note]')" '[1,""]'
  rlock hold job --end
  finish "$next"
  exits 0
}

@test "release --force --hold never makes a hold end sooner, and says which one there is" {
  rlock hold job --for 2h --holder ann@ops1
  hold other
  rlock hold other --for 1h
  try release job --force --hold 1h
  exits 1
  contains "$OUT" ' by ann@ops1; it stays, since it lasts longer'
  rlock status job --json | jq -e '.[0].hold.by == "ann@ops1"'
  try release other --force --hold 2h
  exits 0
  contains "$OUT" '; it was on hold until '
  [[ $OUT != *' stays'* ]]
}

@test "release --force --hold keeps the reason of the hold that it replaces, unless another is given" {
  rlock hold job --for 1h --note 'disk swap'
  try release job --force --hold 2h
  rlock status job --json | jq -e '.[0].hold.note == "disk swap"'
  try release job --force --hold 3h --note 'hung NFS'
  rlock status job --json | jq -e '.[0].hold.note == "hung NFS"'
}

@test "--hold needs --force, and holds back a lock whose holder has just gone too: 1" {
  refuses 64 '--hold needs --force' release job --token "$(printf 'a%.0s' {1..32})" --hold 1h
  refuses 64 '--note needs --hold, for which it is the reason' release job --force --note 'hung NFS'
  try release job --force --hold 1h --note 'hung NFS'
  matches "$OUT" '^job: on hold until .* \(hung NFS\)$'
  exits 1
  contains "$ERR" 'job is not held: it is free; it is on hold now, which `rlock hold job --end` ends'
  try run --key job -n -- true
  exits 75
}
