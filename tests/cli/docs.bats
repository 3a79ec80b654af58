# The manual and the README: they name what the program knows, and their examples work as written.

load ../support/helpers

ROOT=$BATS_TEST_DIRNAME/../..
MANUAL=$ROOT/man/rlock.1
README=$ROOT/README.md

alive() { ! gone "$1"; }

# section HEADING: of the manual
section() { sed -n "/^\.Sh $1\$/,/^\.Sh /p" "$MANUAL" | sed '1d;$d'; }

subcommands() { rlock --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'; }

# ---- examples

# The commands that the examples call besides rlock. Each leaves a line in $T/called.
CALLED='backup.sh statistics.sh deploy.sh copy-tables.sh switch-over.sh report.sh import.sh cleanup.sh convert.sh migrate.sh fetch-prices.sh rsync git make'

make_stubs() {
  local name
  for name in $CALLED; do
    printf '#!/bin/sh\necho "${0##*/} $*" >>"%s/called"\necho 1,2\n' "$T" >"$T/bin/$name"
    chmod +x "$T/bin/$name"
  done
  mkdir "$T/work"
  cd "$T/work" || return
}

# split_examples: into $T/examples/NUMBER.KIND
split_manual() {
  mkdir -p "$T/examples"
  awk -v dir="$T/examples" '
    /^\.\\" test: / { file = sprintf("%s/%02d.%s", dir, ++n, $3) }
    /^\.Ed/ { if (on) close(file); on = 0; file = "" }
    on { gsub(/\\-/, "-"); gsub(/\\&/, ""); gsub(/\\e/, "\\"); print >file }
    /^\.Bd -literal/ && file { on = 1 }' "$MANUAL"
}

split_readme() {
  mkdir -p "$T/examples"
  awk -v dir="$T/examples" '
    /^```/ && on { on = 0; close(file); next }
    /^```/ { file = sprintf("%s/%02d.%s", dir, ++n, substr($NF, index($NF, "`") ? 4 : 1)); on = 1; next }
    on { print >file }' "$README"
}

try_examples() {
  local file
  make_stubs
  for file in "$T"/examples/*; do
    cli FLUSHALL >/dev/null
    rm -f "$T/called"
    echo "example ${file##*/}:"
    cat "$file"
    "try_${file##*.}" "$file"
  done
}

# Checks that every command that the example mentions was called, and that no lock is left.
check_calls() { # FILE
  local name
  for name in $CALLED; do
    ! grep -qwF -- "$name" "$1" || grep -qwF -- "$name" "$T/called" || fail "$name was not called"
  done
  rlock status --json | jq -e 'all(.state != "held")' || fail "$(rlock status)"
}

try_sh() {
  timeout 20 sh -e "$1" >"$T/out" 2>"$T/err"
  same "$(grep -v '^rlock: waiting for ' "$T/err")" ''
  check_calls "$1"
}

try_start() {
  sed -i "s#=redis://[^ ]*#=$RLOCK_REDIS#" "$1"
  try_sh "$1"
  contains "$(<"$T/out")" 'ok    reachable'
}

# These examples build rlock or run the tests, so only their syntax is checked, and that their scripts exist.
try_install() { :; } # packages.bats does

try_shell() {
  local script
  bash -n "$1"
  while read -r script; do bash -O extglob -n "$ROOT/$script"; done < <(sed -nE 's/^bash ([^ ]+).*/\1/p' "$1")
}

try_text() { :; }

# Once with a free lock, once with a held one, once without Redis.
try_report() {
  contains "$(sh "$1" 2>/dev/null)" 'it ran, and exited with 0'
  hold backup
  contains "$(sh "$1" 2>/dev/null)" 'it did not run: backup not acquired: held by '
  stop "$HOLDER"
  matches "$(RLOCK_REDIS=redis://127.0.0.1:1 sh "$1" 2>&1)" $'\nbackup: redis://127.0.0.1:1: .*Connection refused'
}

# Runs each line as cron would: once with a free lock, once with a held one, once without Redis.
try_crontab() {
  local line
  grep -vE '^[A-Z_]+=|^#' "$1" >"$T/jobs"
  while read -r _ _ _ _ _ line; do
    same "$(sh -c "$line" 2>&1)" 1,2
    rlock release "$(key_of "$line")" --force >/dev/null || true
    hold "$(key_of "$line")"
    same "$(sh -c "${line/-w 50m/-w 200ms}" 2>&1)" ''
    stop "$HOLDER"
    STATUS=0
    RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>"$T/err" || STATUS=$?
    exits 69
    contains "$(<"$T/err")" 'rlock: '
  done <"$T/jobs"
  check_calls "$1"
}

# Jobs that run once a day: the first run does it, the second does not, and nothing runs without Redis.
try_once() {
  local line
  sed -nE 's/^[0-9]+( [^ ]+){4} //p' "$1" >"$T/jobs"
  while read -r line; do
    same "$(sh -c "$line" 2>&1)" 1,2
    same "$(sh -c "$line" 2>&1)" ''
    STATUS=0
    RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>"$T/err" || STATUS=$?
    exits 69
  done <"$T/jobs"
  same "$(wc -l <"$T/called")" "$(wc -l <"$T/jobs")"
  sed -n 's/^\*[^r]* rlock/rlock/p' "$1" | sh >"$T/out" 2>&1 # the others
  [[ ! -s $T/out || $(<"$T/out") == 1,2 ]] || fail "$(<"$T/out")"
  check_calls "$1"
}

# A mail for a day without a backup, and metrics for node_exporter: without Redis the old numbers stay.
try_metrics() {
  local line alarm
  alarm=$(sed -n 's/^17 18 \* \* \* //p' "$1")
  ! rlock run backup -- false || fail 'it does not fail'
  same "$(sh -c "$alarm" 2>&1)" "${alarm:+no backup was made today}"
  rlock run backup -- true
  same "$(sh -c "$alarm" 2>&1)" ''
  line=$(sed -nE "s#^(\* ){5}##; s#/var/lib/prometheus/node-exporter#$T#p" "$1")
  sh -c "$line"
  grep -q '^rlock_last_success_timestamp_seconds{key="backup"} ' "$T/rlock.prom"
  ! RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>/dev/null || fail 'it does not fail without Redis'
  grep -q '^rlock_held{key="backup"} 0' "$T/rlock.prom"
}

# try_alerts FILE: a backup that ended well at 0:00 and never again, one that nobody has heard of, and a lock that is
# held since 0:00, and one that is held anew each hour
try_alerts() {
  cat >"$1.test" <<END
rule_files: [$(basename "$1")]
tests:
  - interval: 10m
    input_series:
      - {series: 'rlock_last_success_timestamp_seconds{key="backup"}', values: '0x200'}
    alert_rule_test:
      - {eval_time: 26h, alertname: NoBackupForADay}
      - {eval_time: 27h, alertname: NoBackupForADay, exp_alerts: [{exp_labels: {key: backup}}]}
  - interval: 1m
    input_series:
      - {series: 'rlock_held_seconds{key="report"}', values: '0+60x200'}
      - {series: 'rlock_held_seconds{key="sync"}', values: '0+60x60 0+60x60 0+60x60 0+60x60'}
    alert_rule_test:
      - {eval_time: 2h, alertname: HeldForTooLong}
      - {eval_time: 3h, alertname: HeldForTooLong, exp_alerts: [{exp_labels: {key: report}}]}
  - interval: 10m
    input_series: []
    alert_rule_test:
      - {eval_time: 20m, alertname: NoBackupForADay, exp_alerts: [{exp_labels: {key: backup}}]}
END
  promtool test rules "$1.test"
}

try_yaml() {
  rlock run backup -- true
  ! command -v promtool >/dev/null || { promtool check rules "$1" && try_alerts "$1"; } || fail "$(<"$1")"
  grep -oE 'rlock_[a-z_]+' "$1" | sort -u | while read -r name; do
    rlock status --prometheus | grep -q "^# TYPE $name " || fail "$name"
  done
}

key_of() { sed -E 's/^rlock run ([^ ]+).*/\1/' <<<"$1"; }

try_systemd() {
  local command
  awk -v dir="$T" '/^# / { file = $2; sub(".*/", "", file) } { print >(dir "/" (file ? file : "backup.service")) }' "$1"
  sed -i "s#=rlock #=$T/bin/rlock #; s#/usr/local/bin/#$T/bin/#" "$T/backup.service"
  command=$(sed -n 's/^ExecStart=//p' "$T/backup.service")
  $command
  check_calls "$1"
  grep -qx KillMode=mixed "$1"
  grep -q OnCalendar "$T/backup.timer"
  verify_units "$T"/backup.*
}

verify_units() { # FILE...
  local unit
  command -v systemd-analyze >/dev/null || return 0
  for unit; do
    systemd-analyze verify "$unit" 2>"$T/err" || fail "$(<"$T/err")"
    ! grep -F "${unit##*/}:" "$T/err" || fail "$(<"$T/err")"
  done
}

# One copy of a service: the second machine's waits, and starts when the first one's has ended, whose unit queues again.
try_service() {
  local command first second
  sed "s#=rlock #=$T/bin/rlock #; s#/usr/local/bin/#$T/bin/#" "$1" >"$T/mailer.service"
  printf '#!/bin/sh\necho $$ >>"%s/mailers"\nexec sleep 600\n' "$T" >"$T/bin/mailer"
  chmod +x "$T/bin/mailer"
  command=$(sed -n 's/^ExecStart=//p' "$T/mailer.service")
  : >"$T/mailers"
  # shellcheck disable=SC2086 # words
  start first $command
  first=$PID
  wait_until "$PATIENCE" has_lines "$T/mailers" 1
  # shellcheck disable=SC2086
  start second $command
  second=$PID
  wait_for_text 'waiting for mailer' "$T/second.err"
  kill -KILL "$(<"$T/mailers")"
  finish "$first"
  exits 137
  wait_until "$PATIENCE" has_lines "$T/mailers" 2
  grep -qx Restart=always "$1"
  # shellcheck disable=SC2086
  start first $command
  wait_for_text 'waiting for mailer' "$T/first.err"
  stop "$PID" "$second"
  same "$(wc -l <"$T/mailers")" 2
  verify_units "$T/mailer.service"
}

# A daemon with one container, which is no descendant of the command and deaf to the TERM that `docker run` passes on.
start_docker() {
  cat >"$T/bin/dockerd" <<'END'
#!/bin/bash
while read -r _ <requests; do
  setsid sleep 600 &
  echo $! >started && mv started container
  wait $!
  rm container
  echo >ended
done
END
  cat >"$T/bin/docker" <<'END'
#!/bin/sh
trap '' TERM
case "$*" in
  'run --rm --name import importer') echo >requests && read -r _ <ended && exit 137 ;;
  'kill import') kill -KILL "$(cat container)" && while [ -e container ]; do sleep 0.02; done ;;
  *) exit 64 ;;
esac
END
  chmod +x "$T"/bin/docker*
  mkfifo requests ended
  start dockerd dockerd
}

# When the lock goes to another run, the container is dead; when the container ends, its status is rlock's.
try_docker() {
  local run container
  start_docker
  start run sh -e "$1"
  run=$PID
  wait_until "$PATIENCE" test -e container
  container=$(<container)
  rlock release import --force --wait 0 || true
  try run import -- sh -c '! grep -qs "^State:.[^ZX]" "/proc/$0/status"' "$container"
  exits 0
  finish "$run"
  exits 76
  start run sh -e "$1"
  run=$PID
  wait_until "$PATIENCE" test -e container
  kill -KILL "$(<container)"
  finish "$run"
  exits 137
}

try_container() {
  local -a command
  mapfile -t command < <(sed -n 's/^command: //p' "$1" | jq -r '.[]')
  same "$("${command[@]}")" 1,2
  contains "$("${command[@]}" 2>&1)" 'done by'
  same "$(<"$T/called")" 'backup.sh --full'
  same "$(sed -n 's/^env: //p' "$1" | jq -r '.[].name')" RLOCK_REDIS
  section EXAMPLES | sed 's/\\-/-/g' | grep -qF "$(sed -n 's/^COPY --from/Ql COPY --from/p' "$README") "
}

# They fail unless the backup ended well.
try_monitor() {
  ! sh -e "$1" || fail 'it is content without a backup'
  rlock run backup -- true
  sh -e "$1"
}

try_break() {
  local fence
  rlock run backup -- true
  hold backup --ttl 3
  fence=$(rlock status backup --json | jq '.[0].holders[0].fence')
  sed -i -E "s/--fence [0-9]+/--fence $fence/" "$1"
  sh -e "$1"
  finish "$HOLDER"
  exits 76
}

try_config() {
  (umask 77 && echo secret >"$T/password")
  cli CONFIG SET requirepass secret >/dev/null
  sed -i -E "s#redis://[^ ]*#$RLOCK_REDIS#; s#/etc/rlock.password#$T/password#" "$1"
  same "$(env -u RLOCK_REDIS rlock run --config "$1" --key job -- sh -c 'echo $RLOCK_TTL_MS')" 60000
  cli -a secret CONFIG SET requirepass '' >/dev/null
}

try_fence() {
  cp "$1" "$T/bin/put"
  chmod +x "$T/bin/put"
  echo old | put 5 4
  echo equal | put 5 6
  ! echo late | put 4 5 || fail "an older fence was taken"
  ! echo cut | put 6 400 || fail "half a file was taken"
  same "$(<prices.csv)" equal
  echo new | put 7 4
  same "$(<prices.csv) $(echo new.*)" 'new new.*'
}

try_fenced() {
  printf '#!/bin/sh\nshift\nexec "$@"\n' >"$T/bin/ssh"
  chmod +x "$T/bin/ssh"
  try_sh "$1"
  same "$(<prices.csv)" 1,2
}

@test "every example of the manual works as written" {
  split_manual
  same "$(cd "$T/examples" && printf '%s\n' *.* | cut -d. -f2 | sort -u | tr '\n' ' ')" "break config container crontab docker fence fenced metrics monitor once report service sh systemd yaml "
  try_examples
}

@test "every example of the README works as written" {
  split_readme
  [[ -e $(echo "$T"/examples/*.break) && -e $(echo "$T"/examples/*.metrics) ]]
  grep -q '^17 18 .* rlock log ' "$T"/examples/*.metrics
  try_examples
}

# What a picture shows: its text without the markup.
picture_text() { sed 's/<[^>]*>//g' "$1" | sed '/^$/d'; }

@test "the pictures of the README show what rlock prints, and can be drawn again" {
  local name
  mkdir "$T/pictures"
  (unset TEST_MARK BATS_TEST_TMPDIR && RLOCK=$T/bin/rlock bash "$ROOT/tests/pictures.sh" "$T/pictures")
  for name in status timeline; do
    contains "$(<"$README")" "(man/$name.svg)"
    picture_text "$ROOT/man/$name.svg" >"$T/shown"
    picture_text "$T/pictures/$name.svg" >"$T/drawn"
    same "$(head -n 1 "$T/shown")" "$(head -n 1 "$T/drawn")"
    same "$(grep -oE '^[a-z-]+ ' "$T/shown" | sort -u)" "$(grep -oE '^[a-z-]+ ' "$T/drawn" | sort -u)"
  done
  same "$(picture_text "$ROOT/man/status.svg" | sed -n 2p | tr -s ' ')" "$(rlock status | tr -s ' ' | sed 's/ $//')"
}

# ---- names and numbers

@test "mandoc finds nothing to warn of in the manual" {
  mandoc -T lint -W warning "$MANUAL" "$ROOT/man/rlock-protocol.7"
}

@test "no macro stands in the text of the manual" {
  local page
  for page in "$MANUAL" "$ROOT/man/rlock-protocol.7"; do
    mandoc -T utf8 "$page" | col -b >"$T/page"
    [[ -s $T/page ]]
    same "$(grep -wE 'Ar|Cm|Ev|Fl|Li|Nm|Op|Pa|Ql|Sx|Xr' "$T/page")" ''
  done
}

# groff needs room between two cells, and ends a quotation at the end of the line, which mandoc would forgive.
@test "every cell of the manual's tables fits into its column, and none is quoted" {
  awk -F ' Ta ' '
    /^\.Bl -column/ { n = split($0, part, "\""); for (i = 2; i <= n; i += 2) width[i / 2] = length(part[i]); table = 1 }
    /^\.El/ { table = 0 }
    !table || !/ Ta / { next }
    {
      rows++
      bad = / Ql / || NF < 2
      sub(/^\.It /, "")
      for (i = 1; i < NF; i++) { gsub(/(^| )(Li|Sy|Ar) /, "", $i); bad = bad || length($i) > width[i] }
      if (bad) { print FILENAME ": " $0; faults++ }
    }
    END { exit faults > 0 || rows < 50 }' "$MANUAL" "$ROOT/man/rlock-protocol.7"
}

@test "the manual explains the options of --help, and no others" {
  local subcommand
  for subcommand in $(subcommands); do
    rlock "$subcommand" --help | grep -oE '^ {2}(-[a-zA-Z],| {3}) --[a-z-]+' | grep -o -- '--.*'
  done | sort -u >"$T/help"
  (($(wc -l <"$T/help") > 20))
  grep '^\.It Fl' "$MANUAL" | grep -oE 'Fl -[a-z-]+' | sed 's/Fl /-/' | sort -u >"$T/manual"
  diff "$T/help" "$T/manual"
}

@test "the short options of --help and manual are the same" {
  local subcommand
  for subcommand in $(subcommands); do
    rlock "$subcommand" --help | sed -nE 's/^  -([a-zA-Z]), (--[a-z-]+).*/\1 \2/p'
  done | sort -u >"$T/help"
  sed -nE 's/^\.It Fl ([a-zA-Z]) , Fl (-[a-z-]+).*/\1 -\2/p' "$MANUAL" | sort -u >"$T/manual"
  diff "$T/help" "$T/manual"
}

@test "the manual's synopsis and description name every subcommand" {
  local subcommand
  for subcommand in $(subcommands); do
    section SYNOPSIS | grep -qx "\.Cm $subcommand" || fail "$subcommand is not in the synopsis"
    section DESCRIPTION | grep -q "^\.It Cm $subcommand" || fail "$subcommand is not in the description"
  done
}

@test "the manual names every environment variable that the program does" {
  local name
  for name in $(grep -ohE '"(RLOCK|REDIS|NO)(CLI)?_[A-Z_]+=?"' "$ROOT"/src/cli/*.cc | tr -d '"=' | sort -u); do
    case $name in RLOCK_VERSION) continue ;; esac
    section ENVIRONMENT | grep -qw "$name" || fail "$name is not explained"
  done
  # Every other variable of which some source asks for the value, be it through a loop over names.
  for name in $(grep -ohE '"(SSL_CERT|LC_|XDG_)[A-Z_]+"|"(LOGNAME|USER|HOME|PATH|LANG|TZ)"|"[A-Z]+(DOMAIN|OPTIONS|ALIASES|_PATH)"' \
    -r "$ROOT/src" --include='*.cc' | tr -d '"' | sort -u); do
    section ENVIRONMENT | grep -qw "$name" || fail "$name is not explained"
  done
}

@test "exit statuses are the same in the program, the manual and the README" {
  sed -nE 's/^ +[a-z_]+ = ([0-9]+),.*/\1/p' "$ROOT/src/base/error.h" >"$T/program"
  (($(wc -l <"$T/program") > 10))
  section 'EXIT STATUS' | sed -n 's/^\.It //p' >"$T/manual"
  sed -nE 's/^\| ([0-9]+) \| .*/\1/p' "$README" >"$T/readme"
  diff "$T/program" "$T/manual"
  diff "$T/program" "$T/readme"
}

@test "the help names the statuses of a subcommand in the manual's words" {
  local subcommand words
  section 'EXIT STATUS' | tr -s '\n' ' ' | sed -E 's/ ([:,;.])/\1/g' >"$T/manual"
  while read -r subcommand words; do
    grep -qF -- "$words" "$T/manual" || fail "the manual does not say: $words"
    rlock "$subcommand" --help | sed -n '/^Exit status:/,/^$/p' | tr -s ' \n' ' ' | grep -qF -- "$words" ||
      fail "the help of $subcommand does not say: $words"
  done <<END
run the lock is held, cooling or on hold, or all attempts have failed.
run 128 + n if signal n ended it.
acquire the lock is held, cooling or on hold
renew the lock is free, or somebody else has it
release the lock is free, or somebody else has it
hold with --end, a lock was not on hold.
status with keys: some are free.
check a finding is FAIL.
END
}

@test "exit statuses are explained in the same words" {
  section 'EXIT STATUS' | sed -E 's/^\.It (.*)/\n| \1 |/; s/^\.(Cm|El|Bl|Pp|No).?//; s/ (No|Cm) / /g; s/(^\.| )Fl / -/' | tr '\n' ' ' | tr -s ' ' |
    grep -oE '\| [0-9]+ \|[^|]*' | sed -E 's/ ([:,;.])/\1/g; s/ +$//; s/(command was not found\.).*/\1/' >"$T/manual"
  grep -E '^\| [0-9]+ \|' "$README" | tr -d '`' | sed 's/ |$//' >"$T/readme"
  diff "$T/manual" "$T/readme"
}

@test "the limits that the manual names are those of the program" {
  local option good bad words
  while read -r option good bad words; do
    section OPTIONS | sed -n "/^\.It.* Fl -$option /,/^\.It/p" | tr '\n' ' ' | grep -qF -- "$words" ||
      fail "the manual does not say of --$option: $words"
    try run limits "--$option=$bad" -- true
    exits 64
    try run limits "--$option=$good" -- true
    ((STATUS != 64)) || fail "$ERR"
  done <<END
ttl 500ms 499ms from 500ms to 7d, by default 30s
ttl 7d 169h from 500ms to 7d
wait 0 3651d 0 is the same as Fl n
conflict-exit-code 255 256 0 to 255
slots 100000 100001 100,000 at most
min-hold 0 8d at most 7d
note $(printf '%01024d %01025d' 0 0) at most 1024 bytes
holder $(printf '%01024d %01025d' 0 0) at most 1024 bytes
once $(printf '%0128d %0129d' 0 0) up to 128 bytes
once-per 30d 31d 30d at most
redis-timeout 60s 61s 60s at most, by default 2s
max-waiting 1000000 1000001 1,000,000 at most
replicas 1000:1ms 1001 1 to 1000
replicas 1000:1ms 1:61s no longer than 60s
renew-every 10ms 9ms 10ms at least
max-lease 7d 8d from 500ms to 7d
END
  contains "$(section OPTIONS)" '1 to 512 bytes'
  contains "$(section DESCRIPTION)" 'The longest is 3650d'
}

# members SUBCOMMAND: the names in the table that the manual has for its JSON
members() {
  section 'JSON OUTPUT' | sed -n "/^\.Cm $1 /,/^\.El/s/^\.It Li \(.*\) Ta .*/\1/p" | tr -d ' ' | tr , '\n' | sort
}

@test "the members of JSON that the manual names are those that are printed" {
  try acquire job --output json
  same "$(jq -r 'keys[]' <<<"$OUT" | sort)" "$(members acquire)"
  try status job --json
  same "$(jq -r '.[0] | keys[]' <<<"$OUT" | sort)" "$(members status)"
  try run other --report "$T/report" -- true
  same "$(jq -r 'keys[]' "$T/report" | sort)" "$(members run)"
  try log other --json
  same "$(jq -r '.[0] | keys[]' <<<"$OUT" | sort)" "$(members log)"
  try check --json
  same "$(jq -r 'keys[]' <<<"$OUT" | sort)" "$(members check)"
}

@test "the metrics that the manual names are those that are printed" {
  hold job
  rlock run other -- true
  section SUBCOMMANDS | sed -n 's/^\.It Li \(rlock_[a-z_]*\).* Ta .*/\1/p' | sort >"$T/manual"
  rlock status --prometheus | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' | sort >"$T/program"
  (($(wc -l <"$T/program") > 10))
  diff "$T/program" "$T/manual"
}

@test "the README has at most 200 lines, and the manual 1,100" {
  (($(wc -l <"$README") <= 200)) || fail "$(wc -l <"$README")"
  (($(wc -l <"$MANUAL") <= 1100)) || fail "$(wc -l <"$MANUAL")"
}

@test "the messages that the README's troubleshooting quotes are those of the program" {
  local part
  grep -rhoE --include='*.cc' '"([^"\\]|\\.)*"' "$ROOT/src" >"$T/literals"
  # What a message names, "KEY" and "...", is cut out; what stands around it must be somewhere in a literal.
  sed -n '/^## Troubleshooting/,/^## /s/^| \(`.*\) | .*/\1/p' "$README" | grep -oE '`[^`]+`' | grep -vx '`run`' | tr -d '`' |
    sed -E 's/\.\.\.|KEY|: /\n/g' | sed -E 's/^ +| +$//g; /^$/d' >"$T/parts"
  (($(wc -l <"$T/parts") >= 10))
  while read -r part; do
    grep -qF -- "$part" "$T/literals" || fail "no message says: $part"
  done <"$T/parts"
}

@test "the times of the manual follow from its rule" {
  section 'THE LEASE' | sed -nE 's/^\.It ([0-9]+) s Ta ([0-9.]+) s Ta ([0-9.]+) s Ta .*/\1 \2 \3/p' >"$T/table"
  same "$(wc -l <"$T/table")" 4
  awk 'function min(a, b) { return a < b ? a : b }
       function max(a, b) { return a > b ? a : b }
       function near(a, b) { return a - b < 0.051 && b - a < 0.051 }
       { kill = $1 * 0.99 - 0.002 - min(5, max($1 / 20, min(0.25, $1 / 10)))
         if (!near(kill, $3) || !near(kill - min(5, $1 / 4), $2)) { print; exit 1 } }' "$T/table"
}

@test "the README's list of packages is the one that the tests install" {
  local listed
  listed=$(sed -nE 's/^build +([^ ]+) .*/\1/p' "$ROOT/tests/install-deps.sh" | sort)
  same "$(sed -n 's/^sudo apt-get install //p' "$README" | tr ' ' '\n' | sort)" "$listed"
}

# ---- what the README says about other tools

@test "flock, killed, leaves its command running, with the lock" {
  start flock flock "$T/lock" sleep 600
  wait_until "$PATIENCE" pgrep -P "$PID"
  local command
  command=$(pgrep -P "$PID")
  kill -KILL "$PID"
  wait_until "$PATIENCE" gone "$PID"
  alive "$command"
  STATUS=0
  flock -n "$T/lock" true || STATUS=$?
  exits 1
  kill "$command"
  STATUS=0
  flock "$T/lock" sh -c 'exit 3' || STATUS=$?
  exits 3
}

@test "etcdctl lock, killed or cut off, leaves its command running while another gets the lock" {
  optional etcd etcd-server
  optional etcdctl etcd-client
  local port=$((20000 + RANDOM % 12000)) command etcd
  export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=http://127.0.0.1:$port
  start etcd etcd --data-dir "$T/etcd" --listen-client-urls "$ETCDCTL_ENDPOINTS" \
    --advertise-client-urls "$ETCDCTL_ENDPOINTS" --listen-peer-urls "http://127.0.0.1:$((port + 1))"
  etcd=$PID
  wait_until "$PATIENCE" etcdctl endpoint health
  start lock etcdctl lock --ttl 2 job sleep 600
  wait_until "$PATIENCE" pgrep -P "$PID"
  command=$(pgrep -P "$PID")
  kill -KILL "$PID"
  timeout 20 etcdctl lock job true
  alive "$command" # although another had the lock
  kill "$command"

  start lock etcdctl lock --ttl 2 job sleep 600
  wait_until "$PATIENCE" pgrep -P "$PID"
  command=$(pgrep -P "$PID")
  kill -STOP "$etcd"
  sleep 5
  alive "$command" # although its lease of 2 s is over
  kill -CONT "$etcd"
  kill "$command"
  finish "$PID"

  printf '#!/bin/sh\nexit 3\n' >"$T/bin/fails"
  chmod +x "$T/bin/fails"
  STATUS=0
  timeout 20 etcdctl lock job fails || STATUS=$?
  exits 1
}

@test "cronlock leaves its command running, killed or not, while another gets the lock" {
  optional cronlock cronlock
  start_redis
  local command
  export CRONLOCK_HOST=127.0.0.1 CRONLOCK_PORT=$REDIS_PORT CRONLOCK_KEY=job CRONLOCK_GRACE=0 CRONLOCK_RELEASE=2
  start lock cronlock sleep 600
  wait_until "$PATIENCE" pgrep -P "$PID" -x sleep
  command=$(pgrep -P "$PID" -x sleep)
  wait_until "$PATIENCE" cronlock touch "$T/another-has-it" # after 2 s
  wait_until "$PATIENCE" test -e "$T/another-has-it"
  alive "$command"
  kill -KILL "$PID"
  kill -STOP "$REDIS_PID"
  sleep 1
  alive "$command"
  kill -CONT "$REDIS_PID"
  kill "$command"
  STATUS=0
  CRONLOCK_KEY=other cronlock sh -c 'exit 3' || STATUS=$?
  exits 3
}

# Each row of the table in SECURITY.md ends with its tests: `room/file`, or `room/file`: words of the test's name.
threats() {
  awk -F' *[|] *' '/^[|]/ && $5 !~ /^(test|-*)$/ { print $5 }' "$ROOT/.github/SECURITY.md"
  grep -oE '\(`(unit|fuzz)/[a-z_]+`\)' "$ROOT/.github/SECURITY.md" | tr -d '()'
}

@test "every line of the threat model names a test that there is" {
  local row each file
  local -i checked=0
  while read -r row; do
    while read -r each; do
      [[ $each =~ ^\`([a-z]+/[a-z_]+)\`(:\ (.+))?$ ]] || fail "$row: no test"
      file=$(compgen -G "$ROOT/tests/${BASH_REMATCH[1]}.*") || fail "$each: no such file"
      [[ -z ${BASH_REMATCH[3]} ]] || grep -q "^@test .*${BASH_REMATCH[3]}" "$file" || fail "$each: no such test"
      checked+=1
    done < <(sed -E 's/[;,] +`/\n`/g' <<<"$row")
  done < <(threats)
  same "$checked" "$(grep -oE '`(cli|redis|run|lock|observe|unit|fuzz)/[a-z_]+`' "$ROOT/.github/SECURITY.md" | wc -l)"
}
