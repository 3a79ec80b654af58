# What a package brings, where it brought it: the program, its manual, and completions that the shells find by
# themselves. installed.sh runs it.

load support/helpers

@test "the program runs a command under a lock" {
  same "$(PATH=${PATH#*:} command -v rlock)" "$RLOCK"
  try run --key job -- echo ran
  exits 0
  same "$OUT" ran
}

@test "man finds the manual, and groff can set it" {
  local page
  contains "$(MANPAGER='cat' man rlock)" 'EXIT STATUS'
  for page in rlock rlock-protocol; do same "$(MANPAGER='cat' man "$page" 2>&1 >/dev/null)" ''; done
}

@test "bash finds the completions" {
  contains "$(bash --norc -c '. /usr/share/bash-completion/bash_completion
    if declare -F _comp_load; then _comp_load rlock; else _completion_loader rlock; fi
    complete -p rlock' 2>&1)" 'rlock'
}

@test "zsh finds the completions" {
  same "$(zsh -f -c 'autoload -Uz compinit && compinit -u -D && print $_comps[rlock]')" _rlock
}

@test "fish finds the completions" {
  # Only desktops set this variable, by which fish finds what is in /usr/local.
  contains "$(XDG_DATA_DIRS=/usr/local/share:/usr/share fish -c 'complete -C "rlock rele"')" release
}
