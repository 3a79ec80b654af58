// limit PORT KEY COMMAND...
//
// The yardstick: the least that a lock around a command costs. It connects, acquires with one script call, spawns the
// command, waits for it, releases with one script call, and exits with the command's status. If the lock is held it
// queues; a release gives the lock to the head of the queue and wakes it. There is no renewal, no time-out, no signal
// handling and no crash handling.
//
// limit PORT: teaches the server the scripts.
#include <errno.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "redis.h"

// KEYS: lock, queue. ARGV: token, lease in ms. -> 1: it is ours; 0: queued, and woken through the list queue .. token
static const char take[] =
    "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end "
    "redis.call('rpush', KEYS[2], ARGV[1]) return 0";
static const char give[] =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local next = redis.call('lpop', KEYS[2]) "
    "if not next then return redis.call('del', KEYS[1]) end "
    "redis.call('set', KEYS[1], next, 'px', ARGV[2]) "
    "return redis.call('rpush', KEYS[2] .. next, 1)";
static const char take_digest[] = "8b061dd0caf0632fbe58cd7dd0929057ceac9be1";
static const char give_digest[] = "111be3007dc24d3c218989b8834d61bc88ee2dcb";
static const char lease[] = "30000";

static void make_token(char token[33]) {
  unsigned long long random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    die("getrandom");
  snprintf(token, 33, "%016llx%016llx", random[0], random[1]);
}

static int run(char** command) {
  extern char** environ;
  pid_t pid;
  int status;
  errno = posix_spawnp(&pid, command[0], NULL, NULL, command, environ);
  if (errno != 0 || waitpid(pid, &status, 0) != pid)
    die(command[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  int fd = redis_connect(argv[1]);
  if (argc == 2) {
    redis_call(fd, "SCRIPT", "LOAD", take, NULL);
    redis_call(fd, "SCRIPT", "LOAD", give, NULL);
    return 0;
  }
  const char* key = argv[2];
  char token[33], queue[300], mine[400];
  make_token(token);
  snprintf(queue, sizeof queue, "%s:q", key);
  snprintf(mine, sizeof mine, "%s%s", queue, token);
  if (redis_call(fd, "EVALSHA", take_digest, "2", key, queue, token, lease, NULL)[1] == '0')
    redis_call(fd, "BLPOP", mine, "0", NULL);
  int status = run(argv + 3);
  redis_call(fd, "EVALSHA", give_digest, "2", key, queue, token, lease, NULL);
  return status;
}
