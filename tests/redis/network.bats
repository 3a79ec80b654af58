# Networks and name servers that fail, and servers that are not Redis. (Outages under a held lock: run/lease.bats.)

load ../support/helpers
load ../support/servers
load ../support/supervision

setup() { hermetic; }

# unreachable PART: a run exits with 69 after one attempt, prints one line with PART, and starts nothing
unreachable() {
  try run --key job "${@:2}" -- touch "$T/started"
  exits 69
  same "$(wc -l <"$T/err")" 1
  contains "$ERR" "$1"
  [[ ! -e $T/started ]]
}

# in_own_network SCRIPT: runs it as root in a network namespace where 192.0.2.2 is ours and 192.0.2.9 swallows packets,
# and where files may be mounted over those of /etc
in_own_network() {
  ((EUID == 0)) || skip "only root can make a network of its own"
  unshare --net --mount true 2>/dev/null || skip "no network namespaces here"
  start network unshare --net --mount bash -ec "
    ip link set lo up
    ip link add hole type veth peer name bottom
    ip link set bottom up
    ip link set hole up
    ip address add 192.0.2.2/24 dev hole
    ip neighbour add 192.0.2.9 lladdr 02:00:00:00:00:01 dev hole nud permanent
    $1"
  finish "$PID"
}

# Shell code for in_own_network: starts a name server that knows the names given as NAME=ADDRESS.
name_server() {
  cat <<END
    echo 'nameserver 127.0.0.1' >'$T/resolv'; mount --bind '$T/resolv' /etc/resolv.conf
    python3 '$HERE/name_server.py' 127.0.0.1 $* & server=\$!
    trap 'kill \$server \$redis; wait || true' EXIT
END
}

# Shell code for in_own_network: starts a Redis at the addresses given, on port 7777.
server_at() {
  echo "'$REDIS_SERVER' --bind $* --port 7777 --protected-mode no --save '' >/dev/null & redis=\$!"
}

# fake_getent SCRIPT: what rlock finds in the place of /usr/bin/getent from now on
fake_getent() {
  ((EUID == 0)) || skip "only root can put another program in the place of getent"
  unshare --mount true 2>/dev/null || skip "this machine has no mount namespaces"
  printf '#!/bin/sh\n%s\n' "$1" >"$T/getent"
  chmod +x "$T/getent"
  [[ -e $T/rlock ]] || mv "$T/bin/rlock" "$T/rlock"
  cat >"$T/bin/rlock" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount --bind "\$0" /usr/bin/getent && exec "\$@"' '$T/getent' '$T/rlock' "\$@"
END
  chmod +x "$T/bin/rlock"
}

in_time() { ((TOOK < $1)) || fail "took $TOOK ms"; }

@test "a port without a listener and a name that does not exist: 69 at once, with the address" {
  export RLOCK_REDIS=redis://127.0.0.1:1
  unreachable "redis://127.0.0.1:1: connection failed: Connection refused"
  quick 500 69 run --key job -- true
  RLOCK_REDIS=redis://no-such-host.invalid:1234 unreachable "cannot look up 'no-such-host.invalid': " --redis-timeout 5s
  RLOCK_REDIS=unix://$T/no.sock unreachable "no.sock: connection failed: No such file or directory"
}

@test "--wait does not repeat a connection that never worked" {
  RLOCK_REDIS=redis://127.0.0.1:1 unreachable "Connection refused" --wait 30s
  in_time 10000
}

@test "an address that swallows packets costs --redis-timeout at most, and a second address is tried before that" {
  printf '%s\n' '#!/bin/sh' 'echo 192.0.2.9' '[ "$2" = hole ] || echo 192.0.2.2' >"$T/getent"
  chmod +x "$T/getent"
  in_own_network "
    mount --bind '$T/getent' /usr/bin/getent
    ! timeout 10 rlock run --redis redis://hole:7 --redis-timeout 500ms --key job -- true || exit 9
    '$REDIS_SERVER' --bind 192.0.2.2 --port 7777 --protected-mode no --save '' --daemonize no >/dev/null & server=\$!
    until '$REDIS_CLI' -h 192.0.2.2 -p 7777 PING >/dev/null; do sleep 0.02; done
    timeout 10 rlock run --redis redis://both:7777 --key job -- echo ran
    kill \$server; wait || true"
  exits 0
  contains "$(<"$T/network.err")" "redis://hole:7: cannot connect in time"
  contains "$(<"$T/network.out")" ran
}

@test "a dead name server costs --redis-timeout and no more" {
  in_own_network "
    echo 'nameserver 192.0.2.9' >'$T/resolv'; mount --bind '$T/resolv' /etc/resolv.conf
    before=\$(date +%s%N)
    status=0; timeout 10 rlock run --redis redis://redis.example.org --redis-timeout 700ms --key job -- true || status=\$?
    echo \$status \$(((\$(date +%s%N) - before) / 1000000))"
  exits 0
  contains "$(<"$T/network.err")" "cannot look up 'redis.example.org' in time"
  read -r status took <"$T/network.out"
  same "$status" 69
  ((took >= 650 && took < 5000)) || fail "$took ms"
}

@test "a name from a name server works by IPv4, by IPv6, and if only one of two addresses answers" {
  in_own_network "
    ip address add fd00::2/64 dev hole nodad
    $(name_server four.internal=192.0.2.2 six.internal=fd00::2 both.internal=192.0.2.9 both.internal=fd00::2)
    $(server_at 192.0.2.2 fd00::2)
    for name in four six both; do
      until timeout 20 rlock run --redis redis://\$name.internal:7777 --redis-timeout 4s --key job -- echo \$name; do sleep 0.1; done
    done
    ! rlock run --redis redis://seven.internal:7777 --key job -- true || exit 9"
  exits 0
  same "$(<"$T/network.out")" $'four\nsix\nboth'
  contains "$(<"$T/network.err")" "cannot look up 'seven.internal': Name or service not known"
}

@test "rlock works in a container with nothing but the program and /etc/resolv.conf" {
  is_static || skip "a build with shared libraries"
  mkdir -p "$T/root"/{etc,proc}
  cp "$(realpath "$T/bin/rlock")" "$T/root/rlock"
  echo 'nameserver 127.0.0.1' >"$T/root/etc/resolv.conf"
  in_own_network "
    mount -t proc proc '$T/root/proc' # as every container has it
    $(name_server redis.internal=192.0.2.2)
    $(server_at 192.0.2.2)
    until timeout 20 chroot '$T/root' /rlock run --redis redis://redis.internal:7777 --key job -- /rlock --version; do
      sleep 0.1
    done"
  exits 0
  same "$(<"$T/network.out")" "$(rlock --version)"
}

@test "getent is asked only for names, and never given a name that it would take for an option" {
  start_redis
  fake_getent "echo \"\$*\" >>'$T/asked'; echo '127.0.0.1 STREAM'"
  local url
  for url in "redis://127.0.0.1:$REDIS_PORT" "redis://localhost:$REDIS_PORT" "unix://$REDIS_SOCK"; do
    try run --redis "$url" --key job -- true
    exits 0
  done
  RLOCK_REDIS=redis://-V:$REDIS_PORT unreachable "cannot look up '-V': "
  [[ ! -e $T/asked ]]
  try run --redis "redis://redis.internal:$REDIS_PORT" --key job -- true
  exits 0
  same "$(<"$T/asked")" 'ahosts redis.internal'
}

@test "no getent is asked that only PATH names" {
  [[ -x /usr/bin/getent ]] || skip "this machine has no /usr/bin/getent"
  start_redis
  printf '#!/bin/sh\necho asked >"%s"; echo 127.0.0.1 STREAM' "$T/asked" >"$T/bin/getent"
  chmod +x "$T/bin/getent"
  RLOCK_REDIS=redis://no-such-host.invalid unreachable "cannot look up 'no-such-host.invalid'" --redis-timeout 5s
  [[ ! -e $T/asked ]]
}

@test "getent gets none of our secrets" {
  start_redis
  fake_getent "env >'$T/seen'; echo '127.0.0.1 STREAM'"
  RLOCK_PASSWORD=secret RLOCK_REDIS=redis://:secret@redis.internal:$REDIS_PORT try status
  grep -q ^PATH= "$T/seen"
  same "$(grep secret "$T/seen")" ''
}

@test "the addresses that getent prints are tried in their order, whatever else it prints" {
  can_trace
  start_redis
  fake_getent "printf '%s\\n' garbage '' '127.0.0.2 STREAM redis' '127.0.0.2 DGRAM' '::1%lo STREAM' '127.0.0.1 STREAM'"
  try run --redis "redis://redis.internal:$REDIS_PORT" --key job -- true
  exits 0
  strace -f -qq -e trace=connect -o "$T/trace" rlock status --redis "redis://redis.internal:$REDIS_PORT"
  same "$(sed -nE 's/.*(127\.0\.0\.[12]|"::1").*/\1/p' "$T/trace" | tr -d '"' | xargs)" '127.0.0.2 ::1 127.0.0.1'
  # A kernel without IPv6 still has IPv4, so a socket that cannot be made does not end the attempt.
  strace -f -qq -o "$T/trace" -e inject=socket:error=EAFNOSUPPORT:when=2 rlock status --redis "redis://redis.internal:$REDIS_PORT"
}

@test "a getent that hangs costs --redis-timeout and is killed; if it prints without end or fails, rlock does the look-up" {
  fake_getent "echo \$\$ >'$T/getent.pid'; exec sleep 600"
  RLOCK_REDIS=redis://redis.internal unreachable "cannot look up 'redis.internal' in time" --redis-timeout 1s
  in_time 10000
  gone "$(<"$T/getent.pid")"
  for fake_getent in 'exec yes' 'exit 2' 'kill -KILL $$'; do
    fake_getent "$fake_getent"
    RLOCK_REDIS=redis://redis.invalid unreachable "cannot look up 'redis.invalid': " --redis-timeout 10s
  done
  in_own_network "
    echo '192.0.2.2 redis' >'$T/hosts'; mount --bind '$T/hosts' /etc/hosts
    $(server_at 192.0.2.2)
    until timeout 10 rlock run --redis redis://redis:7777 --key job -- echo ran; do sleep 0.1; done
    kill \$redis; wait || true"
  exits 0
  same "$(<"$T/network.out")" ran
}

@test "an inner run that gets no answer which it can use does not ask as fast as it can" {
  local asked
  start_fake cancelling
  RLOCK_HELD=job=$(printf '%032d' 7) RLOCK_PREFIX=rlock: start inner rlock run job -- true
  wait_until "$PATIENCE" has_lines "$T/fake.out" 8
  asked=$(wc -l <"$T/fake.out")
  sleep 2
  stop "$PID"
  (($(wc -l <"$T/fake.out") < asked + 100)) || fail "$(wc -l <"$T/fake.out")" # one each 40 ms
}

@test "servers that are not Redis: 69, one line, little memory" {
  local mode
  for mode in garbage partial endless nested wide silent closing ok; do
    start_fake "$mode"
    STATUS=0
    /usr/bin/env time -f %M -o "$T/memory" timeout 15 rlock run --redis-timeout 700ms --key job -- true 2>"$T/err" || STATUS=$?
    ERR=$(<"$T/err")
    exits 69
    same "$(wc -l <"$T/err")" 1
    contains "$ERR" "redis://127.0.0.1:$FAKE_PORT: "
    is_sanitized || (($(tail -n 1 "$T/memory") < 65536)) || fail "$mode: $(<"$T/memory") kB"
  done
}

@test "status is not fooled by servers that are not Redis" {
  local mode
  for mode in garbage endless nested wide ok; do
    start_fake "$mode"
    STATUS=0
    /usr/bin/env time -f %M -o "$T/memory" timeout 15 rlock status --redis-timeout 700ms 2>"$T/err" || STATUS=$?
    exits 69
    is_sanitized || (($(tail -n 1 "$T/memory") < 65536)) || fail "$mode: $(<"$T/memory") kB"
  done
}

@test "a reply that nobody asked for is not taken for the answer to the next request" {
  start_redis
  start_proxy
  hold job -v --ttl 3s --renew-every 1s
  wait_until "$PATIENCE" renewed_more_than 0
  network inject '*1\r\n$4\r\nlost\r\n' # if it were believed, it would end the command
  still_renewed
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(grep -c 'cannot renew' "$T/holder.err")" 0
}

pictures() { grep -c '^KEY' "$T/watch.out"; }

more_pictures_than() { (($(pictures) > $1)); } # COUNT

@test "a reply that came while nobody looked at the connection is not taken for the answer to the next request" {
  local seen
  start_redis
  try acquire job
  start_proxy
  start watch rlock status --watch
  wait_for_text 'job  x' "$T/watch.out"
  network inject '*0\r\n' # while it sleeps between two pictures
  seen=$(pictures)
  wait_until "$PATIENCE" more_pictures_than $((seen + 1))
  same "$(grep -c '^job  x' "$T/watch.out")" "$(pictures)"
  [[ $(<"$T/watch.out") != *rlock:* ]] || fail "$(<"$T/watch.out")"
}

@test "a request without an answer is cancelled, even on a server that has never seen the script for that" {
  start_redis
  try run --key other -- true
  start_proxy
  network drop
  try acquire job -n --redis-timeout 500ms
  exits 69
  wait_until 5 absent rlock:job # its lease is 30 s
  same "$(cli HGET '{rlock:job}:meta' state | cut -d ' ' -f 2)" 1
}

@test "a unix socket whose queue is full is tried for --redis-timeout, and works once there is room" {
  python3 - "$T/full" <<'END' >"$T/full.out" 3>&- 4>&- &
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(0)
filler = socket.socket(socket.AF_UNIX)
filler.connect(sys.argv[1])
print("full", flush=True)
time.sleep(600)
END
  local python=$!
  wait_for_text full "$T/full.out"
  RLOCK_REDIS=unix://$T/full try run --key job --redis-timeout 700ms -- true
  kill "$python"
  exits 69
  contains "$ERR" "cannot connect in time"
  ((TOOK >= 600)) || fail "took $TOOK ms"
}

@test "getent does not outlive an rlock that is killed" {
  fake_getent "echo \$\$ >'$T/getent.pid'; exec sleep 600"
  start looking rlock status --redis redis://redis.internal --redis-timeout 60s
  wait_until "$PATIENCE" test -s "$T/getent.pid"
  kill -KILL "$PID"
  wait_until "$PATIENCE" gone "$(<"$T/getent.pid")"
}

@test "every connection probes a silent peer within half a minute, since a mere listener would never notice" {
  local connections
  start_redis
  hold job
  start waiter rlock run --key job -- true
  wait_until "$PATIENCE" exists '{rlock:job}:waiters'
  connections=$(ss -Htno state established "dport = :$REDIS_PORT")
  (($(wc -l <<<"$connections") >= 2)) || fail "$connections"
  same "$(grep -vE 'timer:\(keepalive,(1[0-5]|[0-9])(\.[0-9]+)?(sec|ms)' <<<"$connections")" ''
}

# nodelay PID: prints, for each of its TCP sockets, whether it sends at once what is small
nodelay() {
  python3 - "$1" <<'END'
import ctypes, os, socket, sys

pid = int(sys.argv[1])
pidfd_getfd = 438  # its number everywhere
process = os.pidfd_open(pid)
for fd in os.listdir(f"/proc/{pid}/fd"):
    if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
        own = socket.socket(fileno=ctypes.CDLL(None).syscall(pidfd_getfd, process, int(fd), 0))
        if own.family == socket.AF_INET:
            print(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
END
}

@test "a small request does not wait until the server has acknowledged the one before it" {
  start_redis
  hold job
  OUT=$(nodelay "$HOLDER") || skip "this machine does not let us look at sockets of others"
  same "$(sort -u <<<"$OUT")" 1
}
