// A minimal Redis client: one blocking socket, one command at a time, no library.
#pragma once
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static _Noreturn void die(const char* what) {
  perror(what);
  exit(125);
}

/// Connects to PORT of this machine, ADDRESS:PORT, or the socket /PATH.
static int redis_connect(const char* where) {
  struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  const char* colon = strchr(where, ':');
  char address[INET_ADDRSTRLEN] = "";
  tcp.sin_port = htons((uint16_t)atoi(colon ? colon + 1 : where));
  if (colon)
    inet_aton(strncat(address, where, (size_t)(colon - where)), &tcp.sin_addr);
  strncpy(local.sun_path, where, sizeof local.sun_path - 1);
  int fd = socket(*where == '/' ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (*where != '/')
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if ((*where == '/' ? connect(fd, (struct sockaddr*)&local, sizeof local)
                     : connect(fd, (struct sockaddr*)&tcp, sizeof tcp)) != 0)
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
