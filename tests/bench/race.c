// race ROUNDS @ NAME COMMAND... @ NAME COMMAND...
//
// Runs the commands in turn, in another order each round, so that a busy neighbour hits all alike. Prints for each a
// line of its name, median time and ninth decile (us), and the medians, over the rounds, of its ratio to the first
// command and of its difference from it.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { most = 32 };
static char *names[most], **commands[most];
static double* times[most];

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double time_of(char** command, const posix_spawn_file_actions_t* silent) {
  extern char** environ;
  pid_t pid;
  int status;
  double start = now_us();
  errno = posix_spawnp(&pid, command[0], silent, NULL, command, environ);
  if (errno != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    fprintf(stderr, "race: %s failed\n", command[0]);
    exit(1);
  }
  return now_us() - start;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(double* values, int count, double q) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[(int)(q * (count - 1) + 0.5)];
}

static void shuffle(int* order, int count) {
  for (int i = count - 1; i > 0; --i) {
    int j = rand() % (i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

int main(int argc, char** argv) {
  int rounds = atoi(argv[1]), count = 0, order[most];
  for (int i = 2; i < argc && count < most; ++i) {
    if (strcmp(argv[i], "@") != 0)
      continue;
    argv[i] = NULL;  // ends the previous command
    names[count] = argv[i + 1];
    commands[count] = argv + i + 2;
    times[count] = calloc((size_t)rounds, sizeof(double));
    order[count] = count;
    ++count;
  }
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  for (int fd = 0; fd < 3; ++fd) posix_spawn_file_actions_addopen(&silent, fd, "/dev/null", O_RDWR, 0);
  for (int round = -2; round < rounds; ++round) {  // the first two only warm the caches
    shuffle(order, count);
    for (int i = 0; i < count; ++i) times[order[i]][round < 0 ? 0 : round] = time_of(commands[order[i]], &silent);
  }
  double ratios[rounds], excess[rounds], sorted[rounds];
  for (int i = 0; i < count; ++i) {
    for (int round = 0; round < rounds; ++round) {
      sorted[round] = times[i][round];
      ratios[round] = times[i][round] / times[0][round];
      excess[round] = times[i][round] - times[0][round];
    }
    printf("%s %.0f %.0f %.2f %.0f\n",
           names[i],
           quantile(sorted, rounds, 0.5),
           quantile(sorted, rounds, 0.9),
           quantile(ratios, rounds, 0.5),
           quantile(excess, rounds, 0.5));
  }
}
