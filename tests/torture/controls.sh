#!/usr/bin/env bash
# Negative controls: the standard run must catch an rlock in which one thing is broken, else it proves nothing.
#   tests/torture/controls.sh [MUTANT...]
#
# Each of mutants/*.patch is applied to a copy of the sources, so the program itself has no code for this.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# mutant, topology, and the rule that it breaks, as the judge's message begins
controls() {
  cat <<END
credit_at_reply          single alive at the lease's end
release_before_reaping   single two holders at once
wake_without_reservation single waiters passed by others
unsettled_grant          quorum fences out of order
replaced_at_once         single begun beside the replaced
supersedes_anybody       single thrown out without a right
latest_takes_earlier_place single waiters passed by others
leaves_early             single left before their time was over
success_forgotten        single done twice
done_by_any_id           single done by nobody
terminal_unheard         single two holders at once
group_spared             single two holders at once
complaint_waits          single never served
kill_opens_proc          single two holders at once
release_given_up         single releases given up
crowd_without_slots      single two holders at once
END
}

build() { # MUTANT: builds it, and leaves the sources as they were
  patch --quiet --strip 1 --directory "$work/tree" <"$here/mutants/$1.patch"
  cmake --build "$work/build" --parallel "$(nproc)" --target rlock >"$work/build.log" 2>&1 || cat "$work/build.log"
  patch --quiet --strip 1 --directory "$work/tree" --reverse <"$here/mutants/$1.patch"
}

is_caught() { # TOPOLOGY RULE
  ! TMPDIR=$work RLOCK=$work/build/rlock bash "$here/run.sh" --topology "$1" --seed 1 >"$work/out" &&
    grep -q "^$2.* [1-9]" "$work/out"
}

mkdir "$work/tree"
cp -r "$root"/{src,tests,man,completions,CMakeLists.txt,LICENSE} "$work/tree"
cmake -S "$work/tree" -B "$work/build" -DCMAKE_BUILD_TYPE=Release >"$work/build.log"

missed=0
while read -r mutant topology rule <&3; do
  (($# == 0)) || [[ " $* " == *" $mutant "* ]] || continue
  build "$mutant"
  if is_caught "$topology" "$rule"; then
    grep "^$rule" "$work/out" | sed "s/^/caught $mutant: /"
  else
    cat "$work/out"
    echo "missed $mutant"
    missed=1
  fi
done 3< <(controls)
exit "$missed"
