# bash completion for rlock(1)

# Sets words to those of the line up to the cursor, and joins what bash has split at ':' and '='.
_rlock_split() {
  local line=${COMP_LINE:0:COMP_POINT} part
  words=()
  for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if ((!${#words[@]})) || [[ -z $line || $line == [[:space:]]* ]]; then
      words+=('')
      line=${line#"${line%%[![:space:]]*}"}
    fi
    [[ $line == "$part"* ]] || part=$line # the cursor is inside this word
    words[-1]+=$part
    line=${line#"$part"}
  done
}

# Offers the lines of standard input that begin with what was typed. The names of locks are anybody's words, and the
# shell would run what stands in $(...): a name is escaped, or left out where the open quote lets it do something.
_rlock_offer() {
  local line open='' typed=$cur prefix='' unsafe='' breaks=${COMP_WORDBREAKS//[^:=@]/}
  case $cur in
    \"*) open=\" typed=${cur:1} unsafe='["$`\\!]' ;;
    \'*) open=\' typed=${cur:1} unsafe="[']" ;;
    *[\"\'\`\$]*) return ;; # a quote begins inside the word
    *)
      typed=${cur//\\/}
      [[ -z $breaks ]] || prefix=${cur%"${cur##*["$breaks"]}"} # readline keeps this part of the word
      ;;
  esac
  while IFS= read -r line; do
    [[ -n $line && $line == "$typed"* ]] || continue
    [[ -z $open || $line != *$unsafe* ]] || continue
    [[ $line != *[=/] ]] || compopt -o nospace 2>/dev/null
    [[ -n $open ]] || printf -v line %q "$line"
    COMPREPLY+=("${line#"$prefix"}")
  done
}

_rlock_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# Completes the command after `--` as if it stood alone.
_rlock_command() {
  local at=0
  while [[ ${COMP_WORDS[at]} != -- ]]; do ((++at)); done
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset $((at + 1))
  elif declare -F _command_offset >/dev/null; then
    _command_offset $((at + 1))
  elif ((at + 1 == COMP_CWORD)); then
    mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
  else
    _rlock_files
  fi
}

_rlock() {
  local words word cur plain=() answer
  _rlock_split
  cur=${words[-1]}
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ $word == -- ]]; then
      [[ " ${plain[*]} " != *" run "* ]] || _rlock_command
      return
    fi
    plain+=("${word//[\"\'\\]/}")
  done
  answer=$("${words[0]}" __complete "${plain[@]}" "$cur" 2>/dev/null </dev/null)
  [[ $cur != --*=* ]] || cur=${cur#*=}
  case $answer in
    :files) _rlock_files ;;
    :processes) _rlock_offer < <(ps -eo pid= 2>/dev/null | tr -d ' ') ;;
    *) _rlock_offer < <(cut -f 1 <<<"$answer") ;;
  esac
}

complete -F _rlock rlock
