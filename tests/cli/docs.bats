# The manual, the README and the packages: they name what the program knows, their examples work as written, and every
# file is installed where it belongs.

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
CALLED='backup.sh deploy.sh copy-tables.sh switch-over.sh report.sh import.sh migrate.sh fetch-prices.sh rsync git make'

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
    rlock run -k backup -- true
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

# These examples build rlock or run the tests, so only their syntax is checked, and that their scripts exist.
try_shell() {
  local script
  bash -n "$1"
  while read -r script; do bash -O extglob -n "$ROOT/$script"; done < <(sed -n 's/^bash //p' "$1")
}

try_text() { :; }

# Runs each line as cron would: once with a free lock, once with a held one, once without Redis.
try_crontab() {
  local line
  grep -vE '^[A-Z_]+=' "$1" >"$T/jobs"
  while read -r _ _ _ _ _ line; do
    same "$(sh -c "$line" 2>&1)" 1,2
    rlock release "$(key_of "$line")" --force >/dev/null || true
    hold "$(key_of "$line")"
    same "$(sh -c "$line" 2>&1)" ''
    stop "$HOLDER"
    STATUS=0
    RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>"$T/err" || STATUS=$?
    exits 69
    contains "$(<"$T/err")" 'rlock: '
  done <"$T/jobs"
  check_calls "$1"
}

# A job that runs once a day: the first run does it, the second does not, and nothing runs without Redis.
try_once() {
  local line
  cli FLUSHALL >/dev/null
  line=$(sed -nE 's/^[0-9]+( [^ ]+){4} //p' "$1")
  same "$(sh -c "$line" 2>&1)" 1,2
  same "$(sh -c "$line" 2>&1)" ''
  same "$(wc -l <"$T/called")" 1
  STATUS=0
  RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>"$T/err" || STATUS=$?
  exits 69
  check_calls "$1"
}

# Metrics for node_exporter: without Redis the old numbers stay.
try_metrics() {
  local line
  line=$(sed -nE "s#^(\* ){5}##; s#/var/lib/prometheus/node-exporter#$T#p" "$1")
  sh -c "$line"
  grep -q '^rlock_last_success_timestamp_seconds{key="backup"} ' "$T/rlock.prom"
  ! RLOCK_REDIS=redis://127.0.0.1:1 sh -c "$line" 2>/dev/null || fail 'it does not fail without Redis'
  grep -q '^rlock_held{key="backup"} 0' "$T/rlock.prom"
}

try_yaml() {
  ! command -v promtool >/dev/null || promtool check rules "$1" || fail "$(<"$1")"
  grep -oE 'rlock_[a-z_]+' "$1" | sort -u | while read -r name; do
    rlock status --prometheus | grep -q "^# TYPE $name " || fail "$name"
  done
}

key_of() { sed -E 's/.*(-k|--key) +([^ ]+).*/\2/' <<<"$1"; }

try_systemd() {
  local unit command
  awk -v dir="$T" '/^# / { file = $2; sub(".*/", "", file) } { print >(dir "/" (file ? file : "backup.service")) }' "$1"
  sed -i "s#=rlock #=$T/bin/rlock #; s#/usr/local/bin/#$T/bin/#" "$T/backup.service"
  command=$(sed -n 's/^ExecStart=//p' "$T/backup.service")
  $command
  check_calls "$1"
  grep -qx KillMode=mixed "$1"
  command -v systemd-analyze >/dev/null || return 0
  for unit in "$T"/backup.*; do
    [[ $unit != *.timer ]] || grep -q OnCalendar "$unit"
    systemd-analyze verify "$unit" 2>"$T/err" || fail "$(<"$T/err")"
    ! grep -F "${unit##*/}:" "$T/err" || fail "$(<"$T/err")"
  done
}

try_dockerfile() {
  local words
  mapfile -t words < <(sed -n 's/^ENTRYPOINT //p' "$1" | jq -r '.[]')
  "${words[@]}"
  check_calls "$1"
  try status --redis "$(sed -n 's/^ENV RLOCK_REDIS=//p' "$1")" --timeout 1
  ((STATUS != 64)) || fail "$ERR"
}

try_break() {
  local fence
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
  echo old | put 5
  echo equal | put 5
  ! echo late | put 4 || fail "an older fence was taken"
  same "$(<prices.csv)" equal
  echo new | put 7
  same "$(<prices.csv)" new
}

try_fenced() {
  printf '#!/bin/sh\nshift\nexec "$@"\n' >"$T/bin/ssh"
  chmod +x "$T/bin/ssh"
  try_sh "$1"
  same "$(<prices.csv)" 1,2
}

@test "every example of the manual works as written" {
  split_manual
  same "$(cd "$T/examples" && printf '%s\n' *.* | cut -d. -f2 | sort -u | tr '\n' ' ')" "break config crontab dockerfile fence fenced metrics once sh systemd yaml "
  try_examples
}

@test "every example of the README works as written" {
  split_readme
  [[ -e $(echo "$T"/examples/*.break) && -e $(echo "$T"/examples/*.metrics) ]]
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
}

@test "exit statuses are the same in the program, the manual and the README" {
  sed -nE 's/^ +[a-z_]+ = ([0-9]+),.*/\1/p' "$ROOT/src/base/exit_code.h" >"$T/program"
  (($(wc -l <"$T/program") > 10))
  section 'EXIT STATUS' | sed -n 's/^\.It //p' >"$T/manual"
  sed -nE 's/^\| ([0-9]+) \| .*/\1/p' "$README" >"$T/readme"
  diff "$T/program" "$T/manual"
  diff "$T/program" "$T/readme"
}

@test "exit statuses are explained in the same words" {
  section 'EXIT STATUS' | sed -E 's/^\.It (.*)/\n| \1 |/; s/^\.(Cm|El|Bl|Pp).?//; s/^\.Fl /-/' | tr '\n' ' ' | tr -s ' ' |
    grep -oE '\| [0-9]+ \|[^|]*' | sed -E 's/ ([:,;.])/\1/g; s/ +$//; s/(command was not found\.).*/\1/' >"$T/manual"
  grep -E '^\| [0-9]+ \|' "$README" | tr -d '`' | sed 's/ |$//' >"$T/readme"
  diff "$T/manual" "$T/readme"
}

@test "the README has at most 200 lines" {
  (($(wc -l <"$README") <= 200)) || fail "$(wc -l <"$README")"
}

@test "the messages that the README's troubleshooting quotes are those of the program" {
  local part
  grep -rhoE --include='*.cc' '"([^"\\]|\\.)*"' "$ROOT/src" >"$T/literals"
  # What a message names, "KEY" and "...", is cut out; what stands around it must be somewhere in a literal.
  sed -n '/^## Troubleshooting/,/^## /s/^| \(`.*\) | .*/\1/p' "$README" | grep -oE '`[^`]+`' | grep -vx '`run`' | tr -d '`' |
    sed -E 's/\.\.\.|KEY|: /\n/g' | sed -E 's/^ +| +$//g; /^$/d' >"$T/parts"
  (($(wc -l <"$T/parts") > 12))
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

# ---- installation and packages

# The directory in which the program under test was built.
find_build() {
  BUILD=$(dirname "$(realpath "$T/bin/rlock")")
  [[ -e $BUILD/cmake_install.cmake ]] || skip "this rlock was not built here"
}

# PREFIX: where zsh finds completions that are installed there
zsh_directory() {
  if [[ $1 == /usr && -e /etc/debian_version ]]; then echo zsh/vendor-completions; else echo zsh/site-functions; fi
}

installed_files() { # PREFIX
  cd "$T/dest$1$1" || return
  same "$(find . -type f | sort)" "$(sort <<END
./bin/rlock
./share/bash-completion/completions/rlock
./share/doc/rlock/copyright
./share/fish/vendor_completions.d/rlock.fish
./share/man/man1/rlock.1
./share/man/man7/rlock-protocol.7
./share/$(zsh_directory "$1")/_rlock
END
)"
  [[ -x bin/rlock && ! -x share/man/man1/rlock.1 ]]
  cmp share/man/man1/rlock.1 "$MANUAL"
  same "$(bin/rlock --version)" "$(rlock --version)"
}

@test "cmake --install puts every file where it belongs" {
  find_build
  local prefix
  for prefix in /usr /usr/local; do
    DESTDIR=$T/dest$prefix cmake --install "$BUILD" --prefix "$prefix" >/dev/null
    installed_files "$prefix"
  done
}

@test "cpack makes a .tar.gz of them" {
  find_build
  (cd "$BUILD" && cpack -G TGZ -B "$T/packages" >"$T/out")
  tar -C "$T" -xzf "$T"/packages/*.tar.gz
  cd "$T"/rlock-*/
  [[ -x bin/rlock && -e share/man/man1/rlock.1 && -e share/zsh/site-functions/_rlock ]]
}

@test "cpack makes a .deb that lintian accepts" {
  find_build
  (cd "$BUILD" && umask 022 && cpack -G DEB -B "$T/packages" >"$T/out")
  dpkg-deb -x "$T"/packages/*.deb "$T/root"
  [[ -e $T/root/usr/share/man/man1/rlock.1.gz && -e $T/root/usr/share/zsh/vendor-completions/_rlock ]]
  same "$("$T/root/usr/bin/rlock" --version)" "$(rlock --version)"
  optional lintian lintian
  lintian --allow-root --fail-on error "$T"/packages/*.deb
}

@test "cpack makes an .rpm" {
  optional rpmbuild rpm
  find_build
  (cd "$BUILD" && cpack -G RPM -B "$T/packages" >"$T/out")
  rpm -qlp "$T"/packages/*.rpm >"$T/list"
  grep -qx /usr/bin/rlock "$T/list"
  grep -qx /usr/share/man/man1/rlock.1 "$T/list"
  same "$(grep -cx /usr/share/man "$T/list")" 0 # that one is the system's
}
