// wire DELAY PID
//
// A network between this namespace, where its end is the interface `near`, and that of the process PID, where it is
// `far`. A packet arrives DELAY microseconds after it was sent. netem does the same, where a kernel has it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { most = 512, largest = 2048 };

/// What is on its way from one end to the other, oldest first, in a ring.
struct way {
  struct packet {
    long long due;  // ns
    size_t size;
    char bytes[largest];
  } packets[most];
  unsigned sent, arrived;
};

static _Noreturn void die(const char* what) {
  perror(what);
  exit(1);
}

static int open_end(const char* name) {
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strcpy(request.ifr_name, name);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
    die("/dev/net/tun");
  return fd;
}

static void enter_network_of(const char* pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
    die(path);
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void take_in(struct way* way, int from, long long delay) {
  while (way->sent - way->arrived < most) {
    struct packet* packet = &way->packets[way->sent % most];
    ssize_t size = read(from, packet->bytes, largest);
    if (size <= 0)
      return;
    packet->due = now() + delay;
    packet->size = (size_t)size;
    ++way->sent;
  }
}

/// Returns when the next packet is due, or a time that never comes.
static long long let_out(struct way* way, int to) {
  for (; way->arrived != way->sent; ++way->arrived) {
    const struct packet* packet = &way->packets[way->arrived % most];
    if (packet->due > now())
      return packet->due;
    if (write(to, packet->bytes, packet->size) < 0 && errno != EIO)  // an interface that is not up yet loses packets
      die("write");
  }
  return __LONG_LONG_MAX__;
}

int main(int argc, char** argv) {
  static struct way ways[2];
  struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
  if (argc != 3)
    return 2;
  long long delay = atoll(argv[1]) * 1000;
  ends[0].fd = open_end("near");
  enter_network_of(argv[2]);
  ends[1].fd = open_end("far");
  prctl(PR_SET_TIMERSLACK, 1);
  for (;;) {
    long long next = __LONG_LONG_MAX__;
    for (int from = 0; from < 2; ++from) {
      take_in(&ways[from], ends[from].fd, delay);
      long long due = let_out(&ways[from], ends[1 - from].fd);
      next = due < next ? due : next;
    }
    long long wait = next - now();
    struct timespec time = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    if (wait > 0)
      ppoll(ends, 2, &time, NULL);
  }
}
