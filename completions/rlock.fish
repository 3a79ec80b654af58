# fish completion for rlock(1)

# Whether the cursor is after the `--` of `rlock run`.
function __rlock_in_command
    set -l words (commandline -opc)
    contains -- -- $words; and contains -- run $words
end

# Completes the command after `--` as if it stood alone.
function __rlock_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    set -l rest $words[(math $at + 1)..-1]
    complete -C (string join ' ' -- (string escape -- $rest[1..-2]) $rest[-1])
end

# Prints rlock's own candidates, each on a line with its meaning.
function __rlock_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1] # a range that begins after the end would count backwards
    set -l current (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' $current)
    for line in ($program __complete $words "$current" 2>/dev/null </dev/null)
        switch $line
            case :files
                __fish_complete_path (string replace -r -- '^--[^=]*=' '' $current) | string replace -r '^' -- "$prefix"
            case :processes
                __fish_complete_pids
            case '*'
                printf '%s\n' "$prefix$line"
        end
    end
end

complete -c rlock -f
complete -c rlock -n __rlock_in_command -xa '(__rlock_command)'
complete -c rlock -n 'not __rlock_in_command' -xa '(__rlock_complete)'
