#!/usr/bin/env bash
# What TLS adds to `run -- true`, and to a client that does nothing else, compared with the same server without TLS.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build race bare
start_tls_redis localhost
mkdir "$T/hashed"
cp "$T/ca.crt" "$T/hashed/ca.pem"
openssl rehash "$T/hashed"

add() { # NAME URL [OPTION...]
  entries+=(@ "$1" rlock run --key tls --redis "${@:2}" -- "$TRUE")
}

add plaintext "redis://localhost:$REDIS_PORT" # the same name, which is looked up too
add file "$RLOCK_REDIS" --cacert "$T/ca.crt"
add directory "$RLOCK_REDIS" --cacert "$T/hashed"
"$T/bin/race" 60 "${entries[@]}" >"$T/times"
"$T/bin/race" 60 @ plaintext bare "$REDIS_PORT" @ file bare "$TLS_PORT" "$T/ca.crt" >"$T/bare"

bare=$(awk '$1 == "file" {print $5 / 1000}' "$T/bare")
heading 'TLS: `run -- true`' 'authorities from' 'median, ms' 'more than plaintext, ms'
while read -r name median _ _ excess; do
  excess=$(calc %.1f "$excess / 1000")
  row "$name" "$(calc %.1f "$median / 1000")" "$excess"
  [[ $name == plaintext ]] ||
    target "TLS with a CA $name, beyond what it costs a bare client" most 1 "$(calc %.1f "$excess - $bare")" ' ms'
done <"$T/times"
row 'file, a bare client' "$(awk '$1 == "file" {printf "%.1f", $2 / 1000}' "$T/bare")" "$(calc %.1f "$bare")"
