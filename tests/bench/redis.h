// A minimal Redis client: one blocking socket, one command at a time, no library.
#pragma once
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static _Noreturn void die(const char* what) {
  perror(what);
  exit(125);
}

/// Connects to 127.0.0.1.
static int redis_connect(const char* port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof address) != 0)
    die("connect");
  return fd;
}

/// The end of the reply that begins at `p`, or nothing while it is not complete.
static const char* redis_end(const char* p, const char* end) {
  const char* line = memchr(p, '\n', (size_t)(end - p));
  if (!line++)
    return NULL;
  int n = atoi(p + 1);
  if (*p == '$' && n >= 0)
    return line + n + 2 <= end ? line + n + 2 : NULL;
  if (*p != '*')
    return line;
  while (n-- > 0 && line) line = redis_end(line, end);
  return line;
}

/// redis_call(fd, WORD..., NULL): the reply as it came, good until the next call.
static const char* redis_call(int fd, ...) {
  static char buffer[8192];
  char words[8192];
  int count = 0, length = 0;
  va_list list;
  va_start(list, fd);
  for (const char* word; (word = va_arg(list, const char*)) != NULL; ++count) {
    length += snprintf(words + length, sizeof words - (size_t)length, "$%zu\r\n%s\r\n", strlen(word), word);
  }
  va_end(list);
  int size = snprintf(buffer, sizeof buffer, "*%d\r\n%s", count, words);
  if (write(fd, buffer, (size_t)size) != size)
    die("write");
  for (size = 0; size == 0 || !redis_end(buffer, buffer + size);) {
    ssize_t got = read(fd, buffer + size, sizeof buffer - 1 - (size_t)size);
    if (got <= 0)
      die("read");
    size += (int)got;
    buffer[size] = 0;
  }
  if (*buffer == '-') {
    fputs(buffer, stderr);
    exit(125);
  }
  return buffer;
}
