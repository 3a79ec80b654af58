# rlock run: a command that leads thousands of processes. run.sh runs these tests by themselves, since so many processes
# that die at once make every other test late.

load ../support/helpers
load ../support/supervision

setup() {
  hermetic
  start_redis_with_a_log
  mkfifo "$T/never"
  PATIENCE=60 # some machines need 5 ms for each process
}

# lose_with TTL COUNT COMMAND: the server freezes under a command that leads COUNT more processes and then says "ready";
# all of them are killed. On a busy machine the lease may be lost before that; then it is started again.
lose_with() {
  for _ in {1..10}; do
    rm -f "$T/stamps"
    start job rlock run --key job --ttl "$1" --redis-timeout 300ms -- \
      dash -c 'for _ in $(seq "$1"); do read -r line <"$0" & done; eval "exec $2"' "$T/never" "$2" "$3"
    wait_until "$PATIENCE" says_ready_or_gone "$PID"
    ! grep -q ready "$T/job.out" || break
  done
  kill -STOP "$REDIS_PID"
  lost
  kill -CONT "$REDIS_PID"
}

# margin_with COUNT: sets MARGIN to the ms from the command's last stamp to the lease's end
margin_with() {
  lose_with 2 "$1" "python3 '$HERE/witness.py' stamp '$T/stamps' stubborn"
  MARGIN=$(python3 "$HERE/witness.py" margin "$T/stamps" "${REDIS_SOCK%/*}" rlock:job)
}

@test "thousands of processes are killed earlier than one, since that takes longer" {
  ulimit -Sn 1024 # as usual; the guard needs a descriptor for each process
  margin_with 0
  local of_one=$MARGIN
  margin_with 4000
  ((of_one > 0 && MARGIN > of_one + 10)) || fail "$MARGIN ms before the lease's end, with one process $of_one ms"
}

@test "a guard that is killing thousands of processes is left to it" {
  lose_with 1 4000 "sh -c 'echo ready; exec sleep 600'"
  contains "$ERR" 'could not be renewed in time'
  ! grep 'the guard process did not stop' "$T/job.err" || fail 'the keeper killed its guard'
}
