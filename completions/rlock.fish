# fish completion for rlock(1)

# Succeeds with the subcommand as its output, or fails where none has been typed.
function __rlock_subcommand
    for word in (commandline -opc)[2..-1]
        if contains -- $word run acquire renew release status check
            echo $word
            return 0
        end
    end
    return 1
end

# The cursor stands behind a `--`.
function __rlock_in_command
    contains -- -- (commandline -opc)
end

# __rlock_needs SUBCOMMAND...: the line has one of these, and no `--`
function __rlock_needs
    not __rlock_in_command; and set -l subcommand (__rlock_subcommand); and contains -- $subcommand $argv
end

# The command behind `--`, completed as it would be without us.
function __rlock_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    set -l rest $words[(math $at + 1)..-1]
    complete -C (string join ' ' -- (string escape -- $rest[1..-2]) $rest[-1])
end

# Names of locks; nothing, and soon, when Redis does not answer. A name that JSON has to escape is left out.
function __rlock_keys
    # They are asked from the Redis that was chosen.
    set -l connection
    set -l option
    for word in (commandline -opc)
        set word (string replace -r '^-r$' -- --redis $word)
        if test -n "$option"
            set -a connection $option=$word
            set option
        else if string match -qr -- '^--(redis|username|password-file|cacert|cert|tls-key|tls-server-name|prefix|max-lease|config)$' $word
            set option $word
        else if string match -qr -- '^--(redis|username|password-file|cacert|cert|tls-key|tls-server-name|prefix|max-lease|config)=|^--insecure$' $word
            set -a connection $word
        end
    end
    timeout 1 rlock status --json --quiet --timeout 500ms $connection 2>/dev/null </dev/null |
        string match -ar '\{"key":"[^"\\\\]*"' | string replace -r '.*:"(.*)"' '$1'
end

complete -c rlock -f
complete -c rlock -n __rlock_in_command -xa '(__rlock_command)'

set -l none 'not __rlock_in_command; and not __rlock_subcommand >/dev/null'
complete -c rlock -n "$none" -xa run -d 'Run a command while holding a lock'
complete -c rlock -n "$none" -xa acquire -d 'Take a lock and print its token'
complete -c rlock -n "$none" -xa renew -d 'Extend a lease'
complete -c rlock -n "$none" -xa release -d 'Give a lock up'
complete -c rlock -n "$none" -xa status -d 'Who holds what, and who waits'
complete -c rlock -n "$none" -xa check -d 'Whether this Redis can be trusted with locks'
complete -c rlock -n "$none" -l version -d 'Show the version'

set -l every 'not __rlock_in_command'
complete -c rlock -n "$every" -s r -l redis -xa '{redis,rediss}{,-sentinel,-cluster}:// unix://' -d 'Which Redis'
complete -c rlock -n "$every" -l username -x -d 'User to authenticate as'
complete -c rlock -n "$every" -l password-file -rF -d 'File whose first line is the password'
complete -c rlock -n "$every" -l cacert -rF -d 'Authorities that may vouch for the server'
complete -c rlock -n "$every" -l cert -rF -d 'Certificate to show to the server'
complete -c rlock -n "$every" -l tls-key -rF -d 'Its private key'
complete -c rlock -n "$every" -l tls-server-name -x -d 'Name in the server\'s certificate'
complete -c rlock -n "$every" -l insecure -d 'Do not verify the server\'s certificate'
complete -c rlock -n "$every" -l prefix -x -d 'Put before every key name'
complete -c rlock -n "$every" -l timeout -x -d 'Longest wait for one answer'
complete -c rlock -n "$every" -l max-lease -x -d 'Longest lease that anybody uses'
complete -c rlock -n "$every" -l config -rF -d 'Configuration file'
complete -c rlock -n "$every" -s q -l quiet -d 'Errors only'
complete -c rlock -n "$every" -s v -l verbose -d 'Every step on stderr'
complete -c rlock -n "$every" -s h -l help -d 'Show the options'

set -l taker '__rlock_needs run acquire'
complete -c rlock -n "$taker" -s k -l key -x -d 'Name of the lock'
complete -c rlock -n "$taker" -s t -l ttl -x -d 'Lease'
complete -c rlock -n "$taker" -s n -l nonblock -d 'Fail at once if the lock is held'
complete -c rlock -n "$taker" -s w -l wait -x -d 'Give up after'
complete -c rlock -n "$taker" -s E -l conflict-exit-code -x -d 'Exit status when not acquired'
complete -c rlock -n "$taker" -s x -l exclusive -d 'Hold it alone'
complete -c rlock -n "$taker" -s s -l shared -d 'Share it with other readers'
complete -c rlock -n "$taker" -l slots -x -d 'How many may hold it at a time'
complete -c rlock -n "$taker" -l min-hold -x -d 'Stays taken at least this long'
complete -c rlock -n "$taker" -l replicas -x -d 'Wait until so many replicas have it'
complete -c rlock -n "$taker" -l holder -x -d 'Who holds it, for status'
complete -c rlock -n "$taker" -l note -x -d 'Why, for status'

set -l signals 'TERM INT HUP QUIT USR1 USR2 KILL'
set -l run '__rlock_needs run'
complete -c rlock -n "$run" -l renew-every -x -d 'Time between renewals'
complete -c rlock -n "$run" -l kill-after -x -d 'Time between the first signal and KILL'
complete -c rlock -n "$run" -l signal -xa "$signals" -d 'First signal'
complete -c rlock -n "$run" -l on-lost -xa 'kill warn' -d 'What to do when the lease can no longer be kept'
complete -c rlock -n "$run" -l at-end -xa 'leave wait kill' -d 'What of the processes that a command leaves behind'
complete -c rlock -n "$run" -l max-runtime -x -d 'Stop the command after'
complete -c rlock -n "$run" -l report -rF -d 'Write what came of it as JSON'
complete -c rlock -n "$run" -a -- -d 'The command follows'

set -l acquire '__rlock_needs acquire'
complete -c rlock -n "$acquire" -l hold-pid -xa '(__fish_complete_pids)' -d 'Renew until this process ends'
complete -c rlock -n "$acquire" -l signal -xa "$signals" -d 'What it gets when the lease is lost'
complete -c rlock -n "$acquire" -l output -xa 'token shell json' -d 'What to print'

set -l locks '__rlock_needs renew release status'
complete -c rlock -n "$locks" -xa '(__rlock_keys)' -d Lock
complete -c rlock -n '__rlock_needs renew release status' -s k -l key -xa '(__rlock_keys)' -d 'Name of the lock'
complete -c rlock -n '__rlock_needs renew release' -l token -x -d 'What acquire printed'
complete -c rlock -n '__rlock_needs renew' -s t -l ttl -x -d 'Time that must remain'
complete -c rlock -n '__rlock_needs release' -l force -d 'Break the lock whoever holds it'
complete -c rlock -n '__rlock_needs release' -l fence -x -d 'Only that acquisition'
complete -c rlock -n '__rlock_needs status check' -l json -d 'Print JSON'
complete -c rlock -n '__rlock_needs status' -l watch -d 'Draw it again every second'
