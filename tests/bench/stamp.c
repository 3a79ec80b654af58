// stamp LOG ID HOLD: the command under a lock. Appends "ID start end" to LOG, in ns. In between it holds for HOLD us
// or, where HOLD is a path, until that FIFO is closed.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void hold(const char* how) {
  char byte;
  if (*how == '/') {
    int gate = open(how, O_RDONLY | O_CLOEXEC);
    while (read(gate, &byte, 1) > 0) {
    }
  } else {
    usleep((useconds_t)atol(how));
  }
}

int main(int argc, char** argv) {
  long long start = now();
  if (argc != 4)
    return 2;
  int log = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
  hold(argv[3]);
  char line[100];
  int size = sprintf(line, "%s %lld %lld\n", argv[2], start, now());
  _exit(write(log, line, (size_t)size) != size);
}
