#!/usr/bin/env bash
# Runs the manual's service and timer under systemd: starts, stops and kills them, and lets the timer start the service.
#   tests/systemd.sh     as root, on a machine whose process 1 is systemd, and that may be spoiled; see fresh.sh
set -Eeuo pipefail

root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
trap 'echo "systemd.sh: line $LINENO: $BASH_COMMAND" >&2' ERR

# The manual's example, each file where its first line says; the job is ours.
install_units() {
  local file=/dev/null line
  while IFS= read -r line; do
    [[ $line != '# /etc/systemd/system/'* ]] || { file=${line#\# } && : >"$file"; }
    echo "$line" >>"$file"
  done < <(sed -n '/^\.\\" test: systemd/,/^\.Ed/p' "$root/man/rlock.1" | sed -n '/^[^.]/ { s/\\-/-/g; p; }')
  install "$root/build/rlock" /usr/local/bin/
  cat >/usr/local/bin/backup.sh <<END
#!/bin/sh
trap 'touch /tmp/tidying; while [ ! -e /tmp/tidy ]; do sleep 0.05; done; exit 0' TERM
echo "\$@" >>/tmp/ran
while [ -e /tmp/busy ]; do sleep 0.05; done
END
  chmod +x /usr/local/bin/backup.sh
  systemctl daemon-reload
}

wait_until() { # COMMAND...: up to 20 s
  local tries
  for tries in {1..400}; do
    ! "$@" || return 0
    sleep 0.05
  done
  echo "systemd.sh: waited in vain for: $*" >&2
  return 1
}

# The units use the default port: nothing is done to a server that was there before us.
answers() { redis-cli INFO server 2>/dev/null | grep -q "^process_id:$1[^0-9]"; }

ran() { (($(wc -l </tmp/ran) >= $1)); }
held() { [[ $(redis-cli EXISTS rlock:backup) == 1 ]]; }
no_job() { ! pgrep -f /usr/local/bin/backup.sh >/dev/null; }
result() { systemctl show --value -p Result backup.service; }
same() { [[ $1 == "$2" ]] || { echo "systemd.sh: expected $2, got $1" >&2 && return 1; }; }

# A new day: what was done is forgotten.
start_a_long_job() {
  redis-cli FLUSHALL >/dev/null
  touch /tmp/busy
  systemctl start --no-block backup.service
  wait_until ran "$1"
}

the_service_runs_its_job() {
  systemctl start backup.service
  same "$(</tmp/ran)" --full
  same "$(result)" success
  same "$(rlock log backup --json | jq -c '.[] | [.end, .exit_status]')" '["exited",0]'
}

# The job tidies up after TERM, and has the lock meanwhile.
a_stopped_service_ends_its_job_and_then_frees_the_lock() {
  start_a_long_job 2
  systemctl stop --no-block backup.service
  wait_until test -e /tmp/tidying
  held
  touch /tmp/tidy
  wait_until systemd_has_ended_it
  no_job
  ! held || { echo 'systemd.sh: the lock is still held' >&2 && return 1; }
}

systemd_has_ended_it() { [[ $(systemctl show --value -p ActiveState backup.service) != *ing ]]; }

# All processes get KILL at once. Nobody is left to free the lock, so it stays for a lease. That was a failed attempt,
# after which the lock cools.
a_killed_service_leaves_the_lock_to_its_lease() {
  start_a_long_job 3
  systemctl kill --signal=KILL backup.service
  wait_until no_job
  held
  wait_until cools
  rlock release backup --force
  rlock run backup -n -- true
}

cools() { [[ $(rlock status backup --json | jq -r '.[0] | [.state, .last.end] | join(" ")') == 'cooling died' ]]; }

a_service_whose_job_is_done_elsewhere_is_content() {
  local elsewhere
  redis-cli FLUSHALL >/dev/null
  rlock run backup --once-per day -- sh -c 'while [ -e /tmp/busy ]; do sleep 0.05; done' &
  elsewhere=$!
  wait_until held
  systemctl reset-failed backup.service
  systemctl start --no-block backup.service
  wait_until waits
  rm /tmp/busy
  wait "$elsewhere"
  wait_until systemd_has_ended_it
  same "$(result)" success
  same "$(wc -l </tmp/ran)" 3
}

waits() { rlock status backup --json | jq -e '.[0].waiters | length > 0' >/dev/null; }

the_timer_starts_the_service() {
  redis-cli FLUSHALL >/dev/null
  systemd-analyze verify /etc/systemd/system/backup.timer
  mkdir -p /etc/systemd/system/backup.timer.d
  printf '[Timer]\nOnActiveSec=0\nAccuracySec=1ms\n' >/etc/systemd/system/backup.timer.d/now.conf
  systemctl daemon-reload
  systemctl enable --now backup.timer
  wait_until ran 4
  systemctl list-timers backup.timer | grep -q backup.service
}

redis-server --save '' >/tmp/redis.log &
wait_until answers $!
install_units
for check in the_service_runs_its_job a_stopped_service_ends_its_job_and_then_frees_the_lock \
  a_killed_service_leaves_the_lock_to_its_lease a_service_whose_job_is_done_elsewhere_is_content \
  the_timer_starts_the_service; do
  "$check"
  echo "systemd: ${check//_/ }"
done
