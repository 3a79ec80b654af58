# The completions in real shells: bash and zsh on a terminal where a tab is typed, fish through its `complete -C`.

load ../support/helpers

FILES=$BATS_TEST_DIRNAME/../../completions

# try_in SHELL CHECK
try_in() {
  "$2" "$1"
  close_terminal
}

# offers SHELL LINE: sets OFFERED to what a tab after LINE offers, sorted, one to a line
offers() {
  case $1 in
    fish) fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$FILES/rlock.fish" "$2" | cut -f 1 >"$T/offered" ;;
    *)
      [[ -n ${KEYS-} ]] || open_terminal "$1"
      rm -f "$T/offered"
      printf '\25%s\t' "$2" >&"$KEYS" # ^U clears the previous line
      wait_until "$PATIENCE" test -e "$T/offered"
      ;;
  esac
  OFFERED=$(sort -u "$T/offered" | grep .) || true
}

# A shell that writes what it is about to offer to $T/offered.
open_terminal() { # SHELL
  mkfifo "$T/keys"
  "write_${1}_settings"
  start terminal env TERM=dumb ZDOTDIR="$T" sh -c 'exec script -qc "$0" /dev/null <>"$1"' "${COMMAND[*]}" "$T/keys"
  TERMINAL=$PID
  exec {KEYS}<>"$T/keys"
  wait_until "$PATIENCE" test -e "$T/ready"
}

# script(1), asked to end, would take two seconds.
close_terminal() {
  [[ -n ${KEYS-} ]] || return 0
  printf '\25exit\r' >&"$KEYS"
  finish "$TERMINAL"
}

# takes SHELL QUOTE NAME...: after the names' first two signs and a tab for each, and the return key, the command gets
# exactly these names
takes() {
  local line='rlock status ' name
  for name in "${@:3}"; do
    line+=$2${name:0:2}$'\t'
    [[ $1 == bash || $name != *[=/] ]] || line+=$2 # which the others leave open, since more may follow
  done
  rm -f "$T/got"
  printf '\25%s\r' "$line" >&"$KEYS"
  wait_until "$PATIENCE" test -e "$T/got"
  diff <(printf '%s\n' status "${@:3}") "$T/got" >&2
}

# An rlock that knows locks of these names and records what a shell makes of them.
pretend_locks() { # NAME...
  printf '%s\tlock\n' "$@" >"$T/names"
  mkdir "$T/pretended"
  cat >"$T/pretended/rlock" <<END
#!/bin/sh
if [ "\$1" = __complete ]; then exec cat '$T/names'; fi
printf '%s\n' "\$@" >'$T/getting'
mv '$T/getting' '$T/got'
END
  chmod +x "$T/pretended/rlock"
  PATH=$T/pretended:$PATH
}

# Names with each special sign.
special_names() {
  local code sign
  for code in {32..47} {58..64} {91..96} {123..126}; do
    printf -v sign %b "\\x$(printf %x "$code")"
    printf '%02d%sz\n' $((code - 32)) "$sign"
  done
}

# Names that are commands as soon as a shell forgets to quote them.
hostile_names() {
  printf '%s\n' "aa\$(touch $T/ran)" "ab\`touch $T/ran\`" "ac'; touch $T/ran; '" "ad\"; touch $T/ran; \"" \
    "ae=\$(touch $T/ran)=" "af;touch $T/ran;" "ag\\" "ah\$(touch $T/ran)/" 'ai!!' "aj'\$(touch $T/ran)'"
}

quotes_names() { # SHELL
  local special hostile quote name
  mapfile -t special < <(special_names)
  mapfile -t hostile < <(hostile_names)
  pretend_locks "${special[@]}" "${hostile[@]}"
  open_terminal "$1"
  for quote in '' \' \"; do
    takes_what_it_offers "$1" "$quote" "${special[@]}"
    for name in "${hostile[@]}"; do takes_what_it_offers "$1" "$quote" "$name"; done
  done
  [[ ! -e $T/ran ]] || fail 'a name was run as a command'
}

# bash leaves out the names that an open quote does not hold.
takes_what_it_offers() { # SHELL QUOTE NAME...
  local name offered=()
  for name in "${@:3}"; do
    case $1$2$name in
      bash\'*\'* | bash\"*[\"\$\`\\!]*)
        offers bash "rlock status $2${name:0:2}"
        same "$OFFERED" ''
        ;;
      *) offered+=("$name") ;;
    esac
  done
  ((${#offered[@]} == 0)) || takes "$1" "$2" "${offered[@]}"
}

write_fish_settings() {
  COMMAND=(fish --no-config -i -C "'source $FILES/rlock.fish; touch $T/ready'")
}

write_bash_settings() {
  COMMAND=(bash --noprofile --rcfile "$T/.bashrc" -i)
  cat >"$T/.bashrc" <<END
[[ -z \$BASH_COMPLETION_FILE ]] || source "\$BASH_COMPLETION_FILE"
source '$FILES/rlock.bash'
record() {
  _rlock "\$@"
  printf '%s\n' "\${COMPREPLY[@]}" >'$T/offering'
  mv '$T/offering' '$T/offered'
}
complete -F record rlock
bind 'set bell-style none'
PROMPT_COMMAND="touch '$T/ready'"
END
}

write_zsh_settings() {
  COMMAND=(zsh -i)
  cat >"$T/.zshrc" <<END
fpath=('$FILES' \$fpath)
autoload -Uz compinit
compinit -u -d '$T/zcompdump'
compadd() {
  if (( ! \${argv[(I)-[OAD]]} )); then
    local -a hits
    builtin compadd -O hits "\$@"
    print -rl -- \$hits >>'$T/offering'
  fi
  builtin compadd "\$@"
}
record() {
  rm -f '$T/offering'
  zle complete-word
  touch '$T/offering'
  mv '$T/offering' '$T/offered'
}
zle -N record
bindkey -e '^I' record '^U' kill-whole-line
setopt no_beep no_list_beep
precmd() { touch '$T/ready' }
END
}

# includes LINE...: every one of them is offered
includes() {
  local line
  for line; do
    grep -qxF -- "$line" <<<"$OFFERED" || fail "not offered: $line" "but: ${OFFERED//$'\n'/ }"
  done
}

# ---- what every shell must do

knows_subcommands() {
  offers "$1" 'rlock re'
  same "$OFFERED" $'release\nrenew'
  offers "$1" 'rlock --redis-timeout 3 '
  includes run acquire renew release status
}

knows_the_options_of_help() {
  local subcommand
  for subcommand in $(rlock --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do
    offers "$1" "rlock $subcommand --"
    same "$(grep -oE -- '^--[a-z-]+' <<<"$OFFERED" | sort)" \
      "$(rlock "$subcommand" --help | grep -oE '^ {2}[- ][a-zA-Z ][, ]{2}--[a-z-]+' | grep -o -- '--.*' | sort)"
  done
}

knows_values() {
  offers "$1" 'rlock run --signal T'
  includes TERM
  offers "$1" 'rlock run --key job --on-lost '
  same "$OFFERED" $'kill\nwarn'
  offers "$1" 'rlock run --key job --at-end '
  same "$OFFERED" $'kill\nleave\nwait'
  offers "$1" 'rlock run --at-end '
  includes kill leave wait
  offers "$1" 'rlock help l'
  same "$OFFERED" log
  offers "$1" 'rlock acquire --output '
  same "$OFFERED" $'json\nshell\ntoken'
  touch "$T/secret-file"
  offers "$1" "rlock status --password-file $T/secret-"
  matches "$OFFERED" 'secret-file$'
}

# offers_some SHELL LINE: as `offers`, but repeated while nothing is offered: on a busy machine the names come too late
offers_some() {
  for _ in {1..10}; do
    offers "$@"
    [[ -z $OFFERED ]] || return 0
  done
}

knows_locks() {
  cli SET rlock:foreign value
  try acquire deploy-web
  try acquire deploy:db
  try acquire "two words"
  try acquire 'evil"name' --note '{"key":"note"'
  try acquire other --prefix other:
  offers_some "$1" 'rlock release '
  includes deploy-web foreign
  offers_some "$1" 'rlock release --force --key deploy-'
  same "$OFFERED" deploy-web
  offers_some "$1" 'rlock status foreign deploy-'
  same "$OFFERED" deploy-web
  offers_some "$1" 'rlock renew d'
  same "$(wc -l <<<"$OFFERED")" 2
  offers_some "$1" 'rlock status -k deploy-'
  same "$OFFERED" deploy-web
  offers_some "$1" 'rlock log deploy-'
  same "$OFFERED" deploy-web
  offers_some "$1" 'rlock run -nk deploy-'
  same "$OFFERED" deploy-web
  offers_some "$1" 'rlock run -n deploy-'
  same "$OFFERED" deploy-web
  offers "$1" 'rlock run deploy-web '
  same "$OFFERED" --
  offers_some "$1" 'rlock release --force two'
  matches "$OFFERED" '^two.* words$'
  offers_some "$1" 'rlock release --prefix other: '
  same "$OFFERED" other
  offers_some "$1" 'rlock --prefix=other: release '
  same "$OFFERED" other
}

is_silent_without_redis() {
  local begin usual took
  export RLOCK_REDIS=redis://127.0.0.1:1
  begin=$(now_ms)
  offers "$1" 'rlock status '
  usual=$(($(now_ms) - begin))
  same "$OFFERED" ''
  kill -STOP "$REDIS_PID"
  begin=$(now_ms)
  offers "$1" "rlock status --redis redis://127.0.0.1:$REDIS_PORT "
  same "$OFFERED" ''
  took=$(($(now_ms) - begin))
  ((took < 2 * usual + 1500)) || fail "it took $took ms, and $usual ms where nobody listens" # an answer may take 2 s
  [[ $1 == fish ]] || ! grep -q rlock: "$T/terminal.out"
}

knows_the_command() {
  printf '#!/bin/sh\n' >"$T/bin/nightly-backup"
  chmod +x "$T/bin/nightly-backup"
  touch "$T/some-file"
  offers "$1" 'rlock run --key job -- nightly-b'
  same "$OFFERED" nightly-backup
  offers "$1" "rlock run --key job -- cat $T/some-"
  matches "$OFFERED" 'some-file *$'
  offers "$1" 'rlock run --key job -- cat --on-lost '
  [[ $OFFERED != *warn* ]]
}

# answers_within MS COMMAND...: does so at least once in forty attempts, since a busy machine delays it; how much longer
# it may take there is measured by a command that waits for nothing
answers_within() {
  local begin idle took
  for _ in {1..40}; do
    begin=${EPOCHREALTIME/./}
    rlock --version >/dev/null
    idle=$(((${EPOCHREALTIME/./} - begin) / 1000))
    begin=${EPOCHREALTIME/./}
    "${@:2}" >"$T/completed" 2>"$T/complained" || true
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    ((took >= $1 + 4 * idle)) || return 0
  done
  is_sanitized || fail "it never took less than $1 ms, in the end $took ms"
}

@test "names are offered within 150 ms or not at all, whatever Redis does" {
  local url=redis://127.0.0.1:$REDIS_PORT
  kill -STOP "$REDIS_PID"
  answers_within 150 rlock __complete status --redis "$url" ''
  same "$(<"$T/completed")$(<"$T/complained")" ''
  answers_within 150 rlock __complete status --redis redis://127.0.0.1:1 ''
  same "$(<"$T/completed")$(<"$T/complained")" ''
  # A name server that does not answer.
  answers_within 150 rlock __complete status --redis redis://slow.invalid ''
  same "$(<"$T/completed")" ''
}

@test "bash runs no command that stands in the name of a lock, whichever quote is open" {
  try_in bash quotes_names
}

@test "zsh runs no command that stands in the name of a lock, whichever quote is open" {
  try_in zsh quotes_names
}

@test "fish runs no command that stands in the name of a lock, whichever quote is open" {
  try_in fish quotes_names
}

# completes LINE WORD...: the real rlock's answer; a busy machine may be too slow for its time limit
completes() {
  wait_until "$PATIENCE" answers "${@:2}"
  exits 0
  same "$OUT" "$1"
}

# How a lock is offered that this script holds.
held() { printf '%s\theld by %s@%s' "$1" "$(id -un)" "$(uname -n)"; } # NAME

answers() { # WORD...
  try __complete "$@"
  [[ -n $OUT || $STATUS != 0 ]]
}

@test "no name is offered that would not be shown as it is: control characters, stray bytes, invisible signs" {
  local name
  for name in $'a\nb' $'a\tb' $'a\e[31mb' $'a\x80b' $'a\x7fb' $'a\xe2\x80\x8bb' $'a\xe3\x85\xa4b'; do
    cli SET "rlock:$name" value
  done >/dev/null
  try acquire plain
  completes "$(held plain)" release ''
}

@test "no name is offered that would be read as an option" {
  try acquire --key='--redis=redis://127.0.0.1:1'
  exits 0
  try acquire --key=-f
  try acquire plain
  completes "$(held plain)" release ''
}

@test "no name is offered where the line has all that it may have" {
  try acquire plain
  completes "$(held plain)" status other ''
  local line words
  for line in 'acquire other' 'release other' 'status --key other' check 'help run'; do
    read -r -a words <<<"$line"
    try __complete "${words[@]}" ''
    same "$STATUS $OUT" '0 '
  done
}

@test "a lock is offered with its holder, or how its last run ended" {
  try run job -- false
  wait_until "$PATIENCE" answers status j
  matches "$OUT" $'^job\tfree, exit 1 [0-9.]+m?s ago'
  cli SET rlock:job value >/dev/null
  completes $'job\theld by another program' status j
}

@test "renew and release are offered the locks that are not free; --fence, the fences of those who hold the lock" {
  try run over -- true
  exits 0
  try hold idle --for 1h
  exits 0
  try acquire plain
  completes "$(held plain)" release ''
  completes "$(held plain)" renew ''
  local offer
  offer=$(printf '%s\t%s@%s' "$(rlock status plain --json | jq '.[0].holders[0].fence')" "$(id -un)" "$(uname -n)")
  completes "$offer" release plain --force --fence ''
  completes "$offer" release --key plain --force --fence=
  try __complete release --force --fence ''
  same "$STATUS $OUT" '0 '
  try __complete release over --force --fence ''
  same "$STATUS $OUT" '0 '
}

@test "no option is offered that is given already, or contradicts one that is" {
  try __complete run job -n --ttl 5 --
  exits 0
  ! grep -qE '^--(nonblock|wait|ttl)\b' <<<"$OUT" || fail "offered: $OUT"
  grep -q ^--shared <<<"$OUT"
  try __complete run job --slots 3 --redis redis://a --
  ! grep -qE '^--(slots|shared|exclusive|once)\b' <<<"$OUT" || fail "offered: $OUT"
  grep -q ^--redis= <<<"$OUT"
}

@test "a key before the subcommand is completed too" {
  try acquire plain
  completes "$(held plain)" --key ''
}

@test "bash completes subcommands" {
  try_in bash knows_subcommands
}

@test "bash offers for every subcommand the options of its --help" {
  try_in bash knows_the_options_of_help
}

@test "bash completes values and files of options" {
  try_in bash knows_values
}

@test "bash completes names of locks, from the Redis and prefix on the line" {
  try_in bash knows_locks
}

@test "bash offers no names, prints nothing and does not wait long when Redis is away" {
  try_in bash is_silent_without_redis
}

@test "bash completes commands and their arguments after --" {
  try_in bash knows_the_command
}

@test "zsh completes subcommands" {
  try_in zsh knows_subcommands
}

@test "zsh offers for every subcommand the options of its --help" {
  try_in zsh knows_the_options_of_help
}

@test "zsh completes values and files of options" {
  try_in zsh knows_values
}

@test "zsh completes names of locks, from the Redis and prefix on the line" {
  try_in zsh knows_locks
}

@test "zsh offers no names, prints nothing and does not wait long when Redis is away" {
  try_in zsh is_silent_without_redis
}

@test "zsh completes commands and their arguments after --" {
  try_in zsh knows_the_command
}

@test "fish completes subcommands" {
  try_in fish knows_subcommands
}

@test "fish offers for every subcommand the options of its --help" {
  try_in fish knows_the_options_of_help
}

@test "fish completes values and files of options" {
  try_in fish knows_values
}

@test "fish completes names of locks, from the Redis and prefix on the line" {
  try_in fish knows_locks
}

@test "fish offers no names, prints nothing and does not wait long when Redis is away" {
  try_in fish is_silent_without_redis
}

@test "fish completes commands and their arguments after --" {
  try_in fish knows_the_command
}

@test "bash-completion completes the command's own options" {
  BASH_COMPLETION_FILE=/usr/share/bash-completion/bash_completion
  export BASH_COMPLETION_FILE
  offers bash 'rlock run --key a:b -- timeout --kill'
  includes --kill-after=
  close_terminal
}

@test "what is said of a hold is one line, without control bytes, whoever made it" {
  start_redis
  try hold job --for 1h --holder $'eve\n--redis=redis://evil/\n\e]0;x\a' --note $'\tn'
  exits 0
  try __complete status ''
  matches "$OUT" $'^job\ton hold [^\n]*eve\\\\n--redis'
  same "$(grep -c -- ^--redis= <<<"$OUT")" 0
  same "$(tr -d '[:print:]\n\t' <<<"$OUT" | wc -c)" 0
}
