# rlock run among the programs that people put before it, behind it and around it. What systemd does is in fresh.sh.

load ../support/helpers
load ../support/supervision

# Makes a command that leaves a trace when it runs, and another if it ever runs beside itself.
make_alone() {
  cat >"$T/bin/alone" <<END
#!/bin/sh
mkdir $T/running || echo overlap >>$T/overlaps
echo ran >>$T/ran
sleep 0.02
rmdir $T/running
END
  chmod +x "$T/bin/alone"
}

ran_alone() { # COUNT
  [[ ! -e $T/overlaps ]] || fail "the command ran beside itself"
  same "$(wc -l <"$T/ran")" "$1"
}

as_root() { # skips where a test cannot be root, or may not make namespaces
  ((EUID == 0)) || skip "this machine lets only root do that"
  unshare --mount --uts --net --pid --fork true 2>/dev/null || skip "this machine has no namespaces"
}

# cron_machine NAME: starts a cron daemon on a machine of its own, which begins with the jobs of "@reboot". What the
# daemon mails goes to $T/NAME.mail.
cron_machine() {
  local sbin=$T/sbin.$1 spool=$T/spool.$1
  mkdir "$sbin" "$spool"
  cp -p /usr/sbin/cron /usr/sbin/unix_chkpwd "$sbin"
  printf '#!/bin/sh\ncat >>%q\n' "$T/$1.mail" >"$sbin/sendmail"
  chmod 755 "$sbin/sendmail"
  cp "$T/crontab" "$spool/root"
  chmod 600 "$spool/root"
  start "$1" unshare --mount --uts --pid --fork --kill-child --mount-proc sh -euc '
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /etc/cron.d
    mount --bind "$2" /var/spool/cron/crontabs
    mount --bind "$1" /usr/sbin
    hostname "$0"
    exec cron -f' "$1" "$sbin" "$spool"
  DAEMONS+=("$PID")
}

@test "RLOCK_SLOT is there with several slots, and neither for a shared nor for an exclusive lock" {
  try run --key job --slots 2 -- sh -c 'echo "${RLOCK_SLOT-none}"'
  matches "$OUT" '^[01]$'
  try run --key other --shared -- sh -c 'echo "${RLOCK_SLOT-none}"'
  same "$OUT" none
  try run --key third -- sh -c 'echo "${RLOCK_SLOT-none}"'
  same "$OUT" none
}

@test "three machines' cron daemons: one runs the daily job and nobody gets mail; without Redis all three send one" {
  local i DAEMONS=()
  as_root
  cat >"$T/crontab" <<END
PATH=$T/bin:/usr/bin:/bin
RLOCK_REDIS=$RLOCK_REDIS
@reboot rlock run -k backup --once-per 20h -w 12h -E 0 -q -- sh -c 'hostname >>$T/ran; sleep 0.2'; hostname >>$T/over
RLOCK_REDIS=redis://127.0.0.1:1
@reboot rlock run -k backup --once-per 20h -w 12h --redis-timeout 1 -E 0 -q -- touch $T/wrong; hostname >>$T/down
END
  for i in one two three; do cron_machine "$i"; done
  wait_until "$PATIENCE" has_lines "$T/over" 3
  wait_until "$PATIENCE" has_lines "$T/down" 3
  for i in one two three; do
    wait_until "$PATIENCE" has_lines "$T/$i.mail" 1
    same "$(grep '^rlock: ' "$T/$i.mail" | grep -c 'redis://127.0.0.1:1: connection failed')" 1
    same "$(grep -c '^Subject:' "$T/$i.mail")" 1
  done
  same "$(wc -l <"$T/ran")" 1
  [[ ! -e $T/wrong ]]
  { kill -KILL "${DAEMONS[@]}" && wait "${DAEMONS[@]}"; } 2>/dev/null || true # bash would report each death
}

@test "sudo before rlock: the server's address is lost unless it is preserved or given" {
  as_root
  STATUS=0
  unshare --net sudo -n "$T/bin/rlock" run --key job --redis-timeout 1 -- true 2>"$T/err" 3>&- 4>&- || STATUS=$?
  exits 69
  contains "$(<"$T/err")" 'the default address; set RLOCK_REDIS, or redis = URL in /etc/rlock.conf'
  sudo -n --preserve-env=RLOCK_REDIS "$T/bin/rlock" run --key job -- true 3>&- 4>&-
  sudo -n "$T/bin/rlock" run --redis "$RLOCK_REDIS" --key job -- true 3>&- 4>&-
  same "$(rlock log job --json | jq length)" 2
}

@test "sudo between two runs of the same lock: the inner one enters if sudo preserves what it needs" {
  as_root
  try run --key job -- sudo -n --preserve-env=RLOCK_REDIS "$T/bin/rlock" run -n --key job -- true
  exits 75
  try run --key job -- sudo -n --preserve-env=RLOCK_REDIS,RLOCK_PREFIX,RLOCK_HELD "$T/bin/rlock" run -n --key job -- true
  exits 0
}

@test "sudo behind rlock: TERM reaches the command, and the lock is free when it is dead" {
  as_root
  start job rlock run --key job -- sudo -n sh -c 'echo $$; exec sleep 600'
  wait_until "$PATIENCE" has_lines "$T/job.out" 1
  kill -TERM "$PID"
  finish "$PID"
  exits 143
  gone "$(<"$T/job.out")"
  absent rlock:job
}

@test "sudo behind rlock: what it started is dead when rlock was killed" {
  as_root
  start job rlock run --key job -- sudo -n sh -c 'echo $$; exec sleep 600'
  wait_until "$PATIENCE" has_lines "$T/job.out" 1
  kill -KILL "$PID"
  wait_until 5 gone "$(<"$T/job.out")"
}

@test "make: parallel recipes run alone, a failure stops it, and make inside shares the jobs of make outside" {
  export T
  make_alone
  printf '%s\n' 'all: a b c d' 'a b c d:; @rlock run -qk job -- alone' \
    'fails: a; @rlock run -k job -- sh -c "exit 7"' 'outer:; +@rlock run -k job -- $(MAKE) -f $(T)/Makefile e f' \
    'e f:; @echo made' >"$T/Makefile"
  make -f "$T/Makefile" -j 4 3>&- 4>&-
  ran_alone 4
  STATUS=0
  make -f "$T/Makefile" fails 2>"$T/err" 3>&- 4>&- || STATUS=$?
  exits 2
  contains "$(<"$T/err")" 'Error 7'
  make -f "$T/Makefile" -j 2 outer >"$T/out" 2>&1 3>&- 4>&-
  same "$(grep -c '^made$' "$T/out")" 2
  ! grep jobserver "$T/out" || fail "$(<"$T/out")"
}

@test "xargs -P and find -exec: each runs alone, and a command's failure is told as without rlock" {
  make_alone
  seq 12 | xargs -P 6 -I{} rlock run -qk job -- alone 3>&- 4>&-
  ran_alone 12
  mkdir "$T/files"
  touch "$T/files/"{a,b,c}
  find "$T/files" -type f -exec rlock run -qk job -- alone \; 3>&- 4>&-
  find "$T/files" -type f -exec rlock run -qk job -- alone {} + 3>&- 4>&-
  ran_alone 16
  STATUS=0
  seq 3 | xargs -n 1 rlock run -k job -- false 3>&- 4>&- || STATUS=$?
  exits 123
  STATUS=0
  find "$T/files" -type f -exec rlock run -k job -- false {} + 3>&- 4>&- || STATUS=$?
  exits 1
}

@test "timeout before rlock: 124, the command is dead, and the lock is free" {
  start job timeout 1 rlock run --key job -- sh -c 'echo $$; exec sleep 600'
  finish "$PID"
  exits 124
  ! has_lines "$T/job.out" 1 || gone "$(<"$T/job.out")"
  wait_until "$PATIENCE" absent rlock:job
}

@test "timeout behind rlock: its 124 is the status" {
  try run --key job -- timeout 0.1 sleep 600
  exits 124
  absent rlock:job
}

@test "script: the command has a terminal, and its status is kept" {
  STATUS=0
  script -qec "rlock run --key job -- sh -c 'tty; exit 7'" /dev/null >"$T/out" 3>&- 4>&- || STATUS=$?
  exits 7
  grep -q '^/dev/pts/' "$T/out" || fail "$(<"$T/out")"
}

@test "less: it shows a status that is piped to it, and it reads the keys when it is the command" {
  export TERM=vt100
  seq 500 >"$T/numbers"
  hold other
  user sh -c 'rlock status | less' @ 'expect other' 'type q'
  exits 0
  user rlock run --key job -- less "$T/numbers" @ 'expect 20' 'type G' 'expect 500' 'type q'
  exits 0
  absent rlock:job
}

@test "vim: a file is edited and saved, and the terminal is as before" {
  export TERM=vt100
  echo old >"$T/file"
  user "${SHELL_THERE[@]}" @ 'expect prompt>' 'type stty -g >$HOME/before' \
    "type rlock run --key job -- vim.tiny -u NONE $T/file" 'expect old' "type :s/old/new/" 'type :wq' \
    "until grep -q new $T/file" 'expect prompt>' 'type stty -g >$HOME/after; exit 3'
  exits 3
  same "$(<"$T/file")" new
  same "$(<"$T/after")" "$(<"$T/before")"
}

@test "read -s: what is typed is not shown, and is shown again afterwards" {
  export ASK='Password: '
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    'type rlock run --key job -- bash -c "read -srp \"\$ASK\" word; echo; echo \$word | tr a-z A-Z"' \
    'expect Password:' 'type hidden' 'expect HIDDEN' 'expect prompt>' 'type echo sho''wn' 'expect shown' 'type exit 3'
  exits 3
  ! grep -q hidden <<<"$SHOWN" || fail "$SHOWN"
}
