// bare PORT [CA]: the least that a client does: it connects, with TLS by a file of authorities if that is given, asks
// for a PING, and exits. What TLS costs it is what OpenSSL and the server cost everybody.
#include <openssl/ssl.h>

#include "redis.h"

int main(int argc, char** argv) {
  int fd = redis_connect(argv[1]);
  if (argc == 2) {
    redis_call(fd, "PING", NULL);
    _exit(0);
  }
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  if (SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1)
    die(argv[2]);
  SSL* session = SSL_new(context);
  char answer[100];
  if (SSL_set_fd(session, fd) != 1 || SSL_set1_host(session, "localhost") != 1 || SSL_connect(session) != 1 ||
      SSL_write(session, "PING\r\n", 6) != 6 || SSL_read(session, answer, sizeof answer) < 5 || *answer != '+')
    die("TLS");
  _exit(0);
}
