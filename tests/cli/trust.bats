# Which files may decide for rlock: those that nobody but root and the effective user can have written. Another local
# user, here 12345, plants the rest.

load ../support/helpers

setup() {
  hermetic
  ((EUID == 0)) || skip 'this machine has one user only'
  start_redis --requirepass s3cret
  cli() { REDISCLI_AUTH=s3cret "$REDIS_CLI" -s "$REDIS_SOCK" --no-auth-warning "$@"; }
  chmod 755 "$BATS_RUN_TMPDIR" "$BATS_SUITE_TMPDIR" "$BATS_FILE_TMPDIR" "$T" 2>/dev/null || true
  mkdir "$T/etc"
  (umask 77 && echo s3cret >"$T/etc/password")
  printf 'redis = %s\npassword-file = %s\n' "$RLOCK_REDIS" "$T/etc/password" >"$T/etc/rlock.conf"
  CONF=$T/etc/rlock.conf
  unset RLOCK_REDIS
}

works() { # ARG...
  try status "$@"
  exits 0
  same "$ERR" ''
}

# distrusts PART FILE ARG...: rlock refuses the file, saying what to do; then it is done, and rlock is content
distrusts() {
  local part=$1 file=$2 advice
  shift 2
  refuses 78 "$part" status "$@"
  contains "$ERR" "$file"
  advice=$(grep -oE '(chown|chmod) [^ ]+ [^ ]+$' <<<"$ERR")
  $advice
  works "$@"
}

@test "files of root in folders of root are used" {
  works --config "$CONF"
}

@test "a configuration file of another user is refused, however it is named" {
  chown 12345 "$CONF"
  distrusts "it belongs to user 12345; if it can be trusted: chown root $CONF" "--config $CONF" --config "$CONF"
  chown 12345 "$CONF"
  RLOCK_CONFIG=$CONF distrusts 'belongs to user 12345' "RLOCK_CONFIG $CONF"
  chown 12345 "$CONF"
  XDG_CONFIG_HOME=$T/etc distrusts 'belongs to user 12345' "$CONF"
  mkdir "$T/.config"
  cp "$CONF" "$T/.config"
  chown 12345 "$T/.config/rlock.conf"
  distrusts 'belongs to user 12345' "$T/.config/rlock.conf"
}

@test "a file that its group or others can write is refused" {
  local mode
  for mode in 620 602; do
    chmod "$mode" "$CONF"
    distrusts "it can be written by others; if it can be trusted: chmod go-w $CONF" "$CONF" --config "$CONF"
    chmod "$mode" "$T/etc/password"
    distrusts "password file $T/etc/password: it can be written by others" "$T/etc/password" --config "$CONF"
    chmod 600 "$T/etc/password"
  done
}

@test "a folder in place of a file is told as such, and nobody is asked to change who may write to it" {
  chmod 1777 "$T/etc"
  refuses 78 "--config $T/etc: Is a directory" status --config "$T/etc"
  refuses 78 "password file $T/etc: Is a directory" status --password-file "$T/etc"
}

@test "a file in a folder where others could replace it is refused; a sticky folder is accepted" {
  chmod 777 "$T/etc"
  distrusts "its folder can be written by others; if it can be trusted: chmod go-w $T/etc" "$CONF" --config "$CONF"
  chmod 775 "$T/etc"
  distrusts "its folder can be written by others" "$CONF" --config "$CONF"
  chown 12345 "$T/etc"
  distrusts "its folder belongs to user 12345; if it can be trusted: chown root $T/etc" "$CONF" --config "$CONF"
  chmod 1777 "$T/etc"
  works --config "$CONF"
}

@test "a link is as good as the place that it leads to" {
  mkdir "$T/links" "$T/far" # without the password, whose folder is judged too
  cp "$CONF" "$T/far"
  ln -s ../far/rlock.conf "$T/links/rlock.conf"
  works --config "$T/links/rlock.conf"
  chmod 777 "$T/far"
  distrusts "chmod go-w $T/far" "$T/links/rlock.conf" --config "$T/links/rlock.conf"
}

@test "every folder and link on the way to a file is judged" {
  mkdir "$T/links" "$T/open"
  ln -s ../etc/rlock.conf "$T/open/rlock.conf"
  ln -s ../open/rlock.conf "$T/links/rlock.conf"
  works --config "$T/links/rlock.conf"
  chmod 777 "$T/open"
  distrusts "chmod go-w $T/open" "$T/links/rlock.conf" --config "$T/links/rlock.conf"
  chmod 1777 "$T/open"
  works --config "$T/links/rlock.conf"
  chmod 755 "$T/open" # in a sticky folder the kernel may refuse it
  chown -h 12345 "$T/open/rlock.conf"
  refuses 78 "the link $T/open/rlock.conf belongs to user 12345; if it can be trusted: chown -h root $T/open/rlock.conf" status --config "$T/links/rlock.conf"
}

@test "a link is followed as the kernel does, where a folder on the way is a link too" {
  mkdir -p "$T/far/links" "$T/far/open"
  ln -s ../../etc/rlock.conf "$T/far/open/rlock.conf"
  ln -s ../open/rlock.conf "$T/far/links/rlock.conf"
  ln -s far/links "$T/near"
  works --config "$T/near/rlock.conf"
  chmod 777 "$T/far/open"
  distrusts "chmod go-w $T/far/open" "$T/near/rlock.conf" --config "$T/near/rlock.conf"
}

@test "an authority that everybody can write is refused inside a directory too" {
  mkdir "$T/cas"
  echo text >"$T/etc/authority"
  ln -s ../etc/authority "$T/cas/12345678.0"
  try status --redis rediss://127.0.0.1:1 --cacert "$T/cas"
  exits 69
  chmod 666 "$T/etc/authority"
  refuses 78 "--cacert $T/cas/12345678.0: it can be written by others" status --config "$CONF" --cacert "$T/cas"
}

@test "with the home of another user root's password is not sent where that user's file says" {
  local sent
  mkdir -p "$T/home/.config"
  printf 'redis = unix://%s\n' "$T/trap" >"$T/home/.config/rlock.conf"
  chown -R 12345:12345 "$T/home"
  start trap python3 -c '
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
print(server.accept()[0].recv(100), flush=True)' "$T/trap"
  wait_for_text ready "$T/trap.out"
  for sent in RLOCK_PASSWORD=s3cret REDISCLI_AUTH=s3cret RLOCK_PASSWORD_FILE=$T/etc/password; do
    start run env HOME="$T/home" "$sent" rlock run -k job -- true
    finish "$PID"
    exits 78
  done
  same "$(<"$T/trap.out")" ready
}

@test "a pipe that another user planted is refused and not waited for" {
  mkdir -m 1777 "$T/open"
  mkfifo "$T/open/pipe"
  chown 12345 "$T/open/pipe"
  refuses 78 'belongs to user 12345' status --config "$T/open/pipe"
  refuses 78 'belongs to user 12345' status --config "$CONF" --password-file "$T/open/pipe"
}

@test "certificates and keys of another user are refused" {
  local option
  echo text >"$T/file"
  chown 12345 "$T/file"
  for option in cacert cert tls-key; do
    refuses 78 "--$option $T/file: it belongs to user 12345" status --config "$CONF" "--$option" "$T/file"
  done
}

@test "a directory of authorities to which everybody can add his own is refused, with the sticky bit too" {
  mkdir -m 1777 "$T/cas"
  refuses 78 "--cacert $T/cas: it can be written by others; if it can be trusted: chmod go-w $T/cas" \
    status --config "$CONF" --cacert "$T/cas"
  mkdir -m 755 "$T/cas/inner"
  try status --redis rediss://127.0.0.1:1 --cacert "$T/cas/inner"
  exits 69
}

@test "descriptors that the caller gives are used, whoever owns what is behind them" {
  chown 12345 "$CONF"
  try status --config /dev/stdin <"$CONF"
  exits 0
  try status --config <(cat "$CONF")
  exits 0
  chown root "$CONF"
  try status --config /dev/null --redis "redis://127.0.0.1:$REDIS_PORT" --password-file <(echo s3cret)
  exits 0
  same "$ERR" ''
}

@test "a device that somebody else has linked to is not read: a terminal is one, and they type at it" {
  ln -s /dev/zero "$T/zero"
  chown -h 12345 "$T/zero"
  try status --config "$T/zero"
  exits 78
  contains "$ERR" "the link $T/zero belongs to user 12345"
  ln -s /dev/null "$T/null"
  chown -h 12345 "$T/null"
  try status --config "$T/null" --redis "redis://127.0.0.1:$REDIS_PORT" --password-file <(echo s3cret)
  exits 0
}

@test "a user trusts root's files and their own, and nobody else's" {
  local user=(--reuid=12345 --regid=12345 --clear-groups)
  sed -i '/password-file/d' "$CONF"
  cli CONFIG SET requirepass '' >/dev/null
  cp -L "$T/bin/rlock" "$T/bin/copy"
  start status setpriv "${user[@]}" "$T/bin/copy" status --config "$CONF"
  finish "$PID"
  exits 0
  chown 12345 "$CONF"
  start status setpriv "${user[@]}" "$T/bin/copy" status --config "$CONF"
  finish "$PID"
  exits 0
  start status setpriv --reuid=54321 --clear-groups "$T/bin/copy" status --config "$CONF"
  finish "$PID"
  exits 78
  contains "$(<"$T/status.err")" "belongs to user 12345; if it can be trusted: chown 54321 $CONF"
}

@test "a password file that another user has got hold of is not read at a reconnection" {
  start run rlock run -v -k job --ttl 2s --config "$CONF" -- sleep 600
  wait_until "$PATIENCE" exists rlock:job
  chown 12345 "$T/etc/password"
  cli CLIENT KILL TYPE pubsub >/dev/null
  wait_for_text 'belongs to user 12345' "$T/run.err"
  kill -TERM "$PID"
  finish "$PID"
}

@test "set-uid and set-gid are refused" {
  local as
  for as in --ruid=12345 '--rgid=12345 --clear-groups'; do
    # shellcheck disable=SC2086 # two words
    start status setpriv $as "$T/bin/rlock" status --config "$CONF"
    finish "$PID"
    exits 71
    same "$(<"$T/status.err")" 'rlock: rlock must not be set-uid or set-gid; let sudo run it instead'
  done
}
