#!/usr/bin/env bash
# Installs a package of rlock on a Debian without rlock, tests what it installed, removes it, and looks for leftovers.
#   tests/installed.sh PACKAGE [PREFIX]     a .deb, or a .tar.gz that is unpacked in PREFIX (/usr/local)
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
package=$1 prefix=${2:-/usr/local}
list=$(mktemp -d)
trap 'rm -r "$list"' EXIT

files() { find / -xdev -not -path '/tmp/*' -not -path '/var/cache/*' -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' | sort; }

contents() { tar -tzf "$package" | sed -E "s,^[^/]*/,$prefix/,"; }

install_package() {
  case $package in
    *.deb) dpkg --install "$package" && RLOCK=/usr/bin/rlock ;;
    *) tar -C "$prefix" --strip-components 1 --no-same-owner --no-overwrite-dir -xzf "$package" && RLOCK=$prefix/bin/rlock ;;
  esac
}

remove_package() {
  case $package in
    *.deb) dpkg --purge rlock ;;
    *) contents | grep -v '/$' | xargs rm && contents | grep '/$' | sort -r | xargs rmdir --ignore-fail-on-non-empty ;;
  esac
}

bash "$here/install-deps.sh" server test installed
files >"$list/before"
install_package
export RLOCK
bats "$here/installed.bats"
remove_package
files >"$list/after"
if comm -13 "$list/before" "$list/after" | grep .; then
  echo "installed.sh: $package has left these behind" >&2
  exit 1
fi
