// trade sell|buy ITEM watch|locked PORT LOG SINCE
//
// One trade in a market, which is a hash of items and how many of each are for sale. A seller offers one more, looking
// at its own shop only; a buyer takes one of those that it saw. Both think for a millisecond about what they saw. With
// `watch` Redis detects that it has changed, and the trade is tried again; otherwise a lock must prevent the change.
// Appends "sell|buy done time retries" to LOG, where the trade was begun at SINCE, all in us.
#include <fcntl.h>
#include <time.h>

#include "redis.h"

static long long now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static int try_to_sell(int fd, const char* item, int watch) {
  if (watch)
    redis_call(fd, "WATCH", "shop", NULL);
  redis_call(fd, "GET", "shop", NULL);
  usleep(1000);
  redis_call(fd, "MULTI", NULL);
  redis_call(fd, "HINCRBY", "market", item, "1", NULL);
  return redis_call(fd, "EXEC", NULL)[1] != '-';
}

static int try_to_buy(int fd, const char* item, int watch) {
  char left[30];
  if (watch)
    redis_call(fd, "WATCH", "market", NULL);
  snprintf(left, sizeof left, "%ld", atol(strchr(redis_call(fd, "HGET", "market", item, NULL), '\n') + 1) - 1);
  usleep(1000);
  redis_call(fd, "MULTI", NULL);
  redis_call(fd, "HSET", "market", item, left, NULL);
  return redis_call(fd, "EXEC", NULL)[1] != '-';
}

int main(int argc, char** argv) {
  if (argc != 7)
    return 2;
  int watch = strcmp(argv[3], "watch") == 0, fd = redis_connect(argv[4]), retries = 0;
  while (!(strcmp(argv[1], "buy") == 0 ? try_to_buy : try_to_sell)(fd, argv[2], watch)) ++retries;
  char line[100];
  long long done = now_us();
  int size = sprintf(line, "%s %lld %lld %d\n", argv[1], done, done - atoll(argv[6]), retries);
  int log = open(argv[5], O_WRONLY | O_APPEND | O_CLOEXEC);
  return write(log, line, (size_t)size) != size;
}
