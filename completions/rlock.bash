# bash completion for rlock(1)

# _rlock_options SUBCOMMAND: its long options, those that take a value with a '='
_rlock_options() {
  local every='--redis= --username= --password-file='
  every+=' --cacert= --cert= --tls-key= --tls-server-name= --insecure'
  every+=' --prefix= --timeout='
  every+=' --max-lease='
  every+=' --config='
  every+=' --quiet --verbose --help'
  local taker='--key= --ttl= --nonblock --wait= --conflict-exit-code= --exclusive --shared --slots= --min-hold='
  taker+=' --replicas='
  taker+=' --holder= --note='
  case $1 in
    run) echo "$taker --renew-every= --kill-after= --signal= --on-lost= --at-end= --max-runtime= --report= $every" ;;
    acquire) echo "$taker --hold-pid= --signal= --output= $every" ;;
    renew) echo "--key= --token= --ttl= $every" ;;
    release) echo "--key= --token= --force --fence= $every" ;;
    status) echo "--key= --json --watch $every" ;;
    check) echo "--json $every" ;;
    '') echo "$every --version" ;;
  esac
}

# Sets words: those of the line up to the cursor, with what bash split at ':' and '=' put together again.
_rlock_split() {
  local line=${COMP_LINE:0:COMP_POINT} part
  words=()
  for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if ((!${#words[@]})) || [[ -z $line || $line == [[:space:]]* ]]; then
      words+=('')
      line=${line#"${line%%[![:space:]]*}"}
    fi
    [[ $line == "$part"* ]] || part=$line # the cursor stands inside it
    words[-1]+=$part
    line=${line#"$part"}
  done
}

# Adds the lines of standard input that begin with what was typed, quoted as it is.
_rlock_offer() {
  local line quoted='' typed=$cur prefix=''
  case $cur in
    [\"\']*) quoted=yes typed=${cur:1} ;;
    *)
      typed=${cur//\\/}
      [[ $COMP_WORDBREAKS == *:* ]] && prefix=${cur%"${cur##*[:=]}"} # readline has it already
      ;;
  esac
  while IFS= read -r line; do
    [[ $line == "$typed"* ]] || continue
    [[ -n $quoted ]] || printf -v line %q "$line"
    COMPREPLY+=("${line#"$prefix"}")
  done
}

# Names of locks; nothing, and soon, when Redis does not answer. A name that JSON has to escape is left out.
_rlock_keys() {
  timeout 1 "${words[0]}" status --json --quiet --timeout 500ms "${connection[@]}" 2>/dev/null </dev/null |
    grep -o '{"key":"[^"\\]*"' | sed 's/{"key":"//; s/"$//'
}

_rlock_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_rlock_value() { # OPTION
  case $1 in
    --key) [[ $subcommand != re* ]] || _rlock_offer < <(_rlock_keys) ;;
    --signal) _rlock_offer < <(printf '%s\n' TERM INT HUP QUIT USR1 USR2 KILL) ;;
    --on-lost) _rlock_offer < <(printf '%s\n' kill warn) ;;
    --at-end) _rlock_offer < <(printf '%s\n' leave wait kill) ;;
    --output) _rlock_offer < <(printf '%s\n' token shell json) ;;
    --hold-pid) _rlock_offer < <(ps -eo pid= 2>/dev/null | tr -d ' ') ;;
    --redis)
      compopt -o nospace 2>/dev/null
      _rlock_offer < <(printf '%s://\n' redis{,s}{,-sentinel,-cluster} unix)
      ;;
    --report) _rlock_files ;;
    --config) _rlock_files ;;
    --cacert | --cert | --tls-key) _rlock_files ;;
    --password-file) _rlock_files ;;
  esac
}

# The command behind `--`, completed as it would be without us.
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
  local words subcommand='' option='' connection=() word cur
  _rlock_split
  cur=${words[-1]}
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ -z $option ]]; then
      case $word in
        --)
          [[ $subcommand != run ]] || _rlock_command
          return
          ;;
        --*=*) option=${word%%=*} word=${word#*=} ;;
        -k) option=--key && continue ;;
        -t) option=--ttl && continue ;;
        -w) option=--wait && continue ;;
        -E) option=--conflict-exit-code && continue ;;
        -r) option=--redis && continue ;;
        --insecure) connection+=("$word") && continue ;;
        -*)
          [[ " $(_rlock_options "$subcommand") " != *" $word= "* ]] || option=$word
          continue
          ;;
        *)
          subcommand=${subcommand:-$word}
          continue
          ;;
      esac
    fi
    # Names are asked from the Redis that was chosen.
    [[ " $(_rlock_options '') " != *" $option= "* ]] || connection+=("$option=${word//[\"\'\\]/}")
    option=''
  done

  if [[ -n $option ]]; then
    _rlock_value "$option"
  elif [[ $cur == --*=* ]]; then
    option=${cur%%=*} cur=${cur#*=}
    _rlock_value "$option"
  elif [[ $cur == -* ]]; then
    # shellcheck disable=SC2046 # one word each
    _rlock_offer < <(printf '%s\n' $(_rlock_options "$subcommand" | tr -d =))
  elif [[ -z $subcommand ]]; then
    _rlock_offer < <(printf '%s\n' run acquire renew release status check)
  elif [[ $subcommand == run ]]; then
    _rlock_offer <<<--
  elif [[ $subcommand == renew || $subcommand == release || $subcommand == status ]]; then
    _rlock_offer < <(_rlock_keys)
  fi
}

complete -F _rlock rlock
