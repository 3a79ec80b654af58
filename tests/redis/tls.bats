# rediss://: what a server must prove, and what rlock says if it does not.

load ../support/helpers
load ../support/servers

setup() {
  hermetic
  start_tls_redis
  export RLOCK_CACERT=$T/ca.crt
}

# refused PART: a run exits with 69, and prints one line with PART
refused() {
  try run --key job -- touch "$T/started"
  exits 69
  same "$(wc -l <"$T/err")" 1
  contains "$ERR" "$1"
  [[ ! -e $T/started ]]
}

@test "the right certificate is accepted, by name and by address" {
  try run --key job -- echo ran
  exits 0
  same "$OUT" ran
  RLOCK_REDIS=rediss://127.0.0.1:$TLS_PORT
  try run --key job -- echo ran
  exits 0
}

@test "a certificate for another name is refused, unless that name is expected" {
  stop_redis
  start_tls_redis elsewhere
  refused "the certificate of localhost is refused: hostname mismatch"
  try run --key job --tls-server-name elsewhere.example -- true
  exits 0
  RLOCK_REDIS=rediss://127.0.0.1:$TLS_PORT
  refused "the certificate of 127.0.0.1 is refused: IP address mismatch; name whom it is for with --tls-server-name"
}

@test "a server of a quorum that has lost the lock gets it back over TLS too, with its fence" {
  local urls=("$RLOCK_REDIS") QUORUM_PORTS=("$REDIS_PORT")
  for _ in 1 2; do
    start_tls_redis
    urls+=("$RLOCK_REDIS") QUORUM_PORTS+=("$REDIS_PORT")
  done
  export RLOCK_REDIS="${urls[*]}"
  starts_to_vote 9
  start holder rlock run -v job --ttl 9s -- sh -c 'echo "$RLOCK_FENCE"; exec sleep 600'
  wait_until "$PATIENCE" test -s "$T/holder.out"
  cli_at "${QUORUM_PORTS[2]}" DEL rlock:job
  wait_until "$PATIENCE" has_fence "${QUORUM_PORTS[2]}" "$(<"$T/holder.out")"
  ! grep 'no answer in time' "$T/holder.err" || fail 'it was not asked at once'
}

has_fence() { [[ $(cli_at "$1" HVALS rlock:job) == *" $2 "* ]]; } # PORT FENCE

@test "an expired certificate is refused" {
  stop_redis
  start_tls_redis expired
  refused "certificate has expired"
  [[ $ERR != *--cacert* ]]
}

@test "an unknown authority is refused, unless --insecure" {
  unset RLOCK_CACERT
  refused "the certificate of localhost is refused: "
  contains "$ERR" '; name its CA with --cacert'
  try run --insecure --key job -- true
  exits 0
  try check --insecure
  matches "$OUT" $'\nwarn +tls +not verified .--insecure.: whoever is on the way can read and answer all'
  SSL_CERT_FILE=$T/ca.crt try run --key job -- true
  exits 0
}

@test "--cacert may be a hashed directory" {
  mkdir "$T/ca"
  cp "$T/ca.crt" "$T/ca/"
  openssl rehash "$T/ca"
  mkdir -m 777 "$T/ca/other" # in a folder nothing is looked for
  try run --cacert "$T/ca" --key job -- true
  exits 0
}

@test "the system's authorities are read from its hashed directory, or else from its bundle" {
  local openssl
  unset RLOCK_CACERT SSL_CERT_FILE SSL_CERT_DIR
  mkdir "$T/ca"
  cp "$T/ca.crt" "$T/ca/"
  SSL_CERT_DIR=$T/ca refused "the certificate of localhost is refused: "
  openssl rehash "$T/ca"
  SSL_CERT_DIR=$T/ca try run --key job -- true
  exits 0
  SSL_CERT_DIR=$T/none:$T/ca try run --key job -- true
  exits 0

  ((EUID == 0)) && unshare --mount true 2>/dev/null || skip "may not mount"
  openssl=$(openssl version -d | sed 's/.*"\(.*\)"/\1/')
  start mounted unshare --mount bash -ec "mount -t tmpfs none '$openssl'; mkdir '$openssl/certs'
    cp '$T/ca.crt' '$openssl/cert.pem'; exec timeout 20 rlock run --key job -- true"
  finish "$PID"
  exits 0
}

@test "a port that does not speak TLS is refused, and nothing falls back" {
  RLOCK_REDIS=rediss://localhost:$REDIS_PORT
  try run --key job --redis-timeout 500ms -- touch "$T/started"
  exits 69
  matches "$ERR" 'TLS: .*(speak TLS on this port|closed the connection)'
  [[ ! -e $T/started ]]
  start_fake garbage
  RLOCK_REDIS=rediss://localhost:$FAKE_PORT
  refused "does not speak TLS on this port"
}

@test "redis:// to a port that speaks TLS fails" {
  RLOCK_REDIS=redis://localhost:$TLS_PORT
  refused "redis://localhost:$TLS_PORT: the server closed the connection at once: is it rediss://?"
  start_fake alert
  RLOCK_REDIS=redis://localhost:$FAKE_PORT
  refused "redis://localhost:$FAKE_PORT: sent an alert of TLS: is it rediss://?"
}

@test "a port on which something else than Redis answers is told as such" {
  start_fake garbage
  RLOCK_REDIS=redis://localhost:$FAKE_PORT
  refused "redis://localhost:$FAKE_PORT: sent something that is not a Redis reply: is it the right port?"
}

@test "rlock says if the server wants a client certificate, and sends the one it was given" {
  cli CONFIG SET tls-auth-clients yes
  refused "--cert"
  try run --key job --cert "$T/client.crt" --tls-key "$T/client.key" -- true
  exits 0
  cat "$T/client.crt" "$T/client.key" >"$T/both.pem"
  try run --key job --cert "$T/both.pem" -- true
  exits 0
}

@test "a client certificate is asked for only if the server wants one, and a wrong or expired one is refused" {
  start_fake closing
  RLOCK_REDIS=rediss://localhost:$FAKE_PORT
  refused "TLS: the server closed the connection"
  [[ $ERR != *--cert* ]]
  RLOCK_REDIS=rediss://localhost:$TLS_PORT
  cli CONFIG SET tls-auth-clients yes
  refused "--cert"
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=stranger -keyout "$T/stranger.key" -out "$T/stranger.crt" \
    2>/dev/null
  try run --key job --cert "$T/stranger.crt" --tls-key "$T/stranger.key" -- touch "$T/started"
  exits 69
  contains "$ERR" "TLS: "
  try run --key job --cert "$T/expired.crt" --tls-key "$T/expired.key" -- touch "$T/started"
  exits 69
  contains "$ERR" "TLS: "
  [[ ! -e $T/started ]]
}

@test "the server is told by which name it is called, and never by an address" {
  python3 - "$T/localhost.crt" "$T/localhost.key" <<'END' >"$T/sni" 3>&- 4>&- &
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
context.sni_callback = lambda session, name, _: print("called", name, flush=True)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    try:
        context.wrap_socket(connection, server_side=True).unwrap()
    except OSError:
        connection.close()
END
  local python=$!
  wait_until "$PATIENCE" test -s "$T/sni"
  RLOCK_REDIS=rediss://localhost:$(head -1 "$T/sni") try run --key job -- true
  RLOCK_REDIS=rediss://127.0.0.1:$(head -1 "$T/sni") try run --key job -- true
  contains "$ERR" 'the server closed the connection'
  [[ $ERR != *'is it rediss://?'* ]] || fail "$ERR"
  kill "$python"
  same "$(sed 1d "$T/sni" | sort -u)" "$(printf 'called None\ncalled localhost')"
}

@test "the key exchange is forward secret, with TLS 1.2 too" {
  openssl req -newkey rsa:2048 -nodes -subj /CN=rsa -keyout "$T/rsa.key" -out "$T/rsa.csr" 2>/dev/null
  openssl x509 -req -in "$T/rsa.csr" -CA "$T/ca.crt" -CAkey "$T/ca.key" -CAcreateserial -days 1 -out "$T/rsa.crt" \
    -extfile <(echo subjectAltName=DNS:localhost) 2>/dev/null
  stop_redis
  start_tls_redis rsa
  cli CONFIG SET tls-protocols TLSv1.2
  cli CONFIG SET tls-ciphers AES128-GCM-SHA256
  refused "TLS: "
  cli CONFIG SET tls-ciphers ECDHE-RSA-AES128-GCM-SHA256
  try run --key job -- true
  exits 0
}

# The server is favoured on one processor, so that it is always ahead of its reader.
@test "a server that sends KeyUpdate messages without an end is given up in time" {
  local cpu begin
  cpu=$(taskset -cp "$BASHPID" | grep -oE '[0-9]+$')
  start flood taskset -c "$cpu" bash -c 'exec openssl s_server -accept 127.0.0.1:0 -cert "$0.crt" -key "$0.key" < <(yes k)' \
    "$T/localhost"
  wait_for_text ACCEPT "$T/flood.out"
  begin=$(now_ms)
  start status taskset -c "$cpu" nice rlock status --redis-timeout 1s \
    --redis "rediss://127.0.0.1:$(sed -n 's/^ACCEPT.*://p' "$T/flood.out")"
  finish "$PID"
  exits 69
  (($(now_ms) - begin < 5000)) || fail "it took $(($(now_ms) - begin)) ms"
  contains "$(<"$T/status.err")" 'no answer in time'
  (($(grep -ac 'SSL_do_handshake -> 1' "$T/flood.out") > 1000)) || fail 'there was no flood'
}

@test "SSL_CERT_FILE names the authorities, and nothing but the alternative names counts" {
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$T/bare.key" -out "$T/bare.csr" 2>/dev/null
  openssl x509 -req -in "$T/bare.csr" -CA "$T/ca.crt" -CAkey "$T/ca.key" -CAcreateserial -days 1 -out "$T/bare.crt" \
    2>/dev/null
  stop_redis
  start_tls_redis bare
  unset RLOCK_CACERT
  export SSL_CERT_FILE=$T/ca.crt
  refused "hostname mismatch"
}

@test "unusable files are configuration errors that name the option" {
  (umask 77 && echo rubbish >"$T/rubbish")
  for option in --cacert --cert --tls-key; do
    for file in "$T/rubbish" "$T/missing"; do
      refuses 78 "$option $file: " run --key job "$option" "$file" -- true
    done
    contains "$ERR" 'No such file or directory'
  done
  chmod 600 "$T/client.crt"
  refuses 78 "--cert $T/client.crt: it holds no private key; name one with --tls-key" \
    run --key job --cert "$T/client.crt" -- true
}

@test "a held lock is renewed, waited for and released over TLS; reconnects are TLS too" {
  hold job --ttl 2s
  start waiter rlock run --key job -- echo next
  wait_for_text "waiting for job" "$T/waiter.err"
  cli CLIENT KILL TYPE normal SKIPME yes >/dev/null
  waiter_has_its_turn
  same "$(<"$T/waiter.out")" next
}

@test "rediss-sentinel works with sentinels and servers that speak only TLS" {
  tls_only
  start_sentinel
  REDIS_SOCK=$PRIMARY_SOCK live
  RLOCK_REDIS=redis-${RLOCK_REDIS#rediss-}
  try run --key job -n --redis-timeout 1s -- true
  exits 69
}

@test "rediss-cluster works with nodes that speak only TLS" {
  local n
  tls_only
  start_cluster
  for n in {1..9}; do
    try run --key "job$n" -- true
    exits 0
  done
  try acquire job
  exits 0
  try status --json
  query 'map(select(.state == "held") | .key) == ["job"]'
  try check
  exits 0
  same "$(grep -c '^ok    reachable' <<<"$OUT")" 3
}

@test "TLS 1.2 is not spoken, nor a cipher used, where this machine's OpenSSL does not allow that" {
  printf '%s\n' 'openssl_conf = init' '[init]' 'ssl_conf = ssl' '[ssl]' 'system_default = strict' \
    '[strict]' 'CipherString = ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES256-GCM-SHA384' >"$T/strict.conf"
  cli CONFIG SET tls-protocols TLSv1.2
  cli CONFIG SET tls-ciphers 'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256'
  try run --key job -- true
  exits 0
  export OPENSSL_CONF=$T/strict.conf
  refused "TLS: "
  cli CONFIG SET tls-ciphers DEFAULT
  try run --key job -- true
  exits 0
  echo 'MinProtocol = TLSv1.3' >>"$T/strict.conf"
  refused "TLS: "
  cli CONFIG SET tls-protocols 'TLSv1.2 TLSv1.3'
  try run --key job -- true
  exits 0
}

@test "a server without a certificate is not believed, however lax this machine's OpenSSL is" {
  printf '%s\n' 'openssl_conf = init' '[init]' 'ssl_conf = ssl' '[ssl]' 'system_default = lax' \
    '[lax]' 'CipherString = ALL:@SECLEVEL=0' >"$T/lax.conf"
  export OPENSSL_CONF=$T/lax.conf
  start anonymous bash -c 'exec openssl s_server -accept 127.0.0.1:0 -nocert -tls1_2 -cipher ALL:aNULL:@SECLEVEL=0 \
    < <(exec tail --pid=$$ -f /dev/null)' # it ends with its input
  wait_for_text ACCEPT "$T/anonymous.out"
  TLS_PORT=$(sed -nE 's/^ACCEPT .*:([0-9]+)$/\1/p' "$T/anonymous.out")
  openssl s_client -connect "127.0.0.1:$TLS_PORT" -tls1_2 </dev/null >"$T/client" 2>&1 || true
  grep -qE 'Cipher is A(EC)?DH' "$T/client" || skip "this OpenSSL has no anonymous ciphers"
  RLOCK_REDIS=rediss://localhost:$TLS_PORT refused "TLS: "
}

@test "TLS 1.1 is not spoken, however lax this machine's OpenSSL is" {
  printf '%s\n' 'openssl_conf = init' '[init]' 'ssl_conf = ssl' '[ssl]' 'system_default = lax' \
    '[lax]' 'MinProtocol = TLSv1' 'CipherString = DEFAULT@SECLEVEL=0' >"$T/lax.conf"
  stop_redis
  export OPENSSL_CONF=$T/lax.conf
  start_tls_redis
  cli CONFIG SET tls-ciphers DEFAULT@SECLEVEL=0
  same "$(cli CONFIG SET tls-protocols TLSv1.1)" OK
  openssl s_client -connect "localhost:$TLS_PORT" -CAfile "$T/ca.crt" >"$T/client" 2>&1 || true
  grep -q 'Protocol *: TLSv1.1' "$T/client" || skip "this OpenSSL has no TLS 1.1"
  refused "TLS: "
  cli CONFIG SET tls-protocols 'TLSv1.1 TLSv1.2'
  try run --key job -- true
  exits 0
}
