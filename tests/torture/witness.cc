// The command under the lock. It and its descendants stamp the time into their record for as long as they live, and it
// works on two resources that trust the lock: one blindly, one that checks the fence.
//
//   witness STAMPS RECORD RESOURCES CELL HOLD_MS write|read|idle [stubborn] [child] [session] [orphan]
//   [elsewhere] [careless] [-- COMMAND...]
//
//   STAMPS, RESOURCES   files of records and cells, see below; RLOCK_SLOT is added to CELL
//   write, read, idle   what it does with its cell
//   stubborn            all ignore TERM
//   child, session, orphan   descendants: a plain child, one in a session of its own, one that forked twice
//   elsewhere           another, in the namespace of processes TORTURE_NAMESPACE, adopted by the init there
//   careless            the command dies of TERM and leaves its descendants to rlock
//   COMMAND             is run meanwhile, and waited for
//
// As a script with a trap and background jobs does, the command ends of INT and HUP with a status of its choice, and
// its descendants go on. USR1 makes it end well.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr int processes = 5;  // the command and four kinds of descendants
constexpr int elsewhere = 4;

/// checker.py reads it.
struct Record {
  std::uint64_t fence;
  std::int64_t slot;
  char token[40];
  std::int64_t first[processes];  // CLOCK_BOOTTIME, in ns
  std::int64_t last[processes];
  std::int32_t pids[processes];
  std::uint64_t updates;        // made to each resource
  std::uint64_t lost_unfenced;  // updates of others that we overwrote, or that were made while we read
  std::uint64_t lost_fenced;
  std::uint64_t refused;             // by the fence
  std::uint64_t done;                // the command ended by itself
  std::atomic<std::uint32_t> leave;  // asks the descendant elsewhere, whose PID means nothing here, to end
  std::atomic<std::uint32_t> left;   // it has made its last stamp
  char spare[48];
};
static_assert(sizeof(Record) == 256);

struct Cell {
  std::atomic<std::uint64_t> unfenced;
  std::uint64_t fenced;   // guarded, with `highest`, by a lock of the file
  std::uint64_t highest;  // fence seen
  std::uint64_t spare;
};

volatile std::sig_atomic_t asked_to_end = 0;
volatile std::sig_atomic_t asked_to_finish = 0;

std::int64_t boottime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void pause_ms(long ms) {
  const timespec time{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
  ::nanosleep(&time, nullptr);
}

template <typename T>
T* map(int fd, std::size_t index) {
  const std::size_t page = 4096;
  const std::size_t offset = index * sizeof(T);
  void* start =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset / page * page));
  if (start == MAP_FAILED)
    std::_Exit(99);
  return reinterpret_cast<T*>(static_cast<char*>(start) + offset % page);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void stamp(Record& record, int process) {
  record.last[process] = boottime();
  if (record.first[process] == 0)
    record.first[process] = record.last[process];
}

/// Reads, thinks, and writes: if two do so at the same time, one of them loses an update.
class Work {
 public:
  Work(Record& record, int file, std::size_t cell) : record_(&record), file_(file), cell_(map<Cell>(file, cell)) {}

  void read() {
    const std::uint64_t before = cell_->unfenced;
    pause_ms(2);
    record_->lost_unfenced += cell_->unfenced != before ? 1 : 0;
  }

  void write() {
    const std::uint64_t unfenced = cell_->unfenced;
    std::uint64_t fenced = 0;
    const bool may = check_fence([&] { fenced = cell_->fenced; });
    pause_ms(2);
    record_->lost_unfenced += cell_->unfenced.exchange(unfenced + 1) != unfenced ? 1 : 0;
    if (may) {
      check_fence([&] {
        record_->lost_fenced += cell_->fenced != fenced ? 1 : 0;
        cell_->fenced = fenced + 1;
      });
    }
    ++record_->updates;
  }

 private:
  /// A read raises the highest fence too, since no holder with a smaller one may write after it.
  template <typename Access>
  bool check_fence(Access access) {
    ::flock(file_, LOCK_EX);
    const bool may = record_->fence >= cell_->highest;
    if (may) {
      cell_->highest = record_->fence;
      access();
    }
    ::flock(file_, LOCK_UN);
    record_->refused += may ? 0 : 1;
    return may;
  }

  Record* record_;
  int file_;
  Cell* cell_;
};

/// Whatever is forked after this is in that namespace.
void enter(const char* name) {
  const int ns = ::open(name, O_RDONLY | O_CLOEXEC);
  if (ns < 0 || ::setns(ns, CLONE_NEWPID) != 0)
    std::_Exit(98);
}

/// Waits as nsenter does for what it has started.
void fork_and_wait() {
  const pid_t child = ::fork();
  if (child == 0)
    return;
  ::waitpid(child, nullptr, 0);
  std::_Exit(0);
}

/// Returns when the descendant has begun to stamp.
void start_descendant(Record& record, int process, bool new_session, bool fork_twice) {
  if (::fork() != 0) {
    while (record.first[process] == 0) pause_ms(1);
    return;
  }
  for (const int number : {SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
  if (new_session)
    ::setsid();
  if (process == elsewhere) {
    enter(variable("TORTURE_NAMESPACE"));
    fork_and_wait();
  }
  if (fork_twice && ::fork() != 0)
    std::_Exit(0);
  record.pids[process] = ::getpid();
  while (process != elsewhere || record.leave == 0) {
    stamp(record, process);
    pause_ms(2);
  }
  record.left = 1;
  std::_Exit(0);
}

bool lives(pid_t pid) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return ::kill(pid, 0) == 0;
}

/// Ends our descendants: rlock takes those that a command leaves running for intended, and does not wait for them.
void end_descendants(Record& record) {
  record.leave = 1;
  while (record.first[elsewhere] != 0 && record.left == 0) pause_ms(1);
  for (int process = 1; process < elsewhere; ++process) {
    while (record.pids[process] != 0 && lives(record.pids[process])) {
      ::kill(record.pids[process], SIGKILL);
      pause_ms(1);
    }
  }
}

pid_t run_inside(char** command) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(command[0], command);
    std::_Exit(127);
  }
  return child;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7)
    return 64;
  for (const int number : {SIGINT, SIGHUP}) std::signal(number, [](int signal) { std::_Exit(128 + signal); });
  std::signal(SIGUSR1, [](int) { asked_to_finish = 1; });
  const int stamps = ::open(argv[1], O_RDWR | O_CLOEXEC);
  const int resources = ::open(argv[3], O_RDWR | O_CLOEXEC);
  Record& record = *map<Record>(stamps, std::strtoul(argv[2], nullptr, 10));
  record.pids[0] = ::getpid();
  record.fence = std::strtoull(variable("RLOCK_FENCE"), nullptr, 10);
  record.slot = std::strtol(variable("RLOCK_SLOT"), nullptr, 10);
  std::strncpy(record.token, variable("RLOCK_TOKEN"), sizeof record.token - 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // one stopped before its first stamp counts as never seen
  stamp(record, 0);
  Work work{record, resources, std::strtoul(argv[4], nullptr, 10) + static_cast<std::size_t>(record.slot)};
  const std::int64_t end = boottime() + std::strtol(argv[5], nullptr, 10) * 1'000'000;
  const std::string_view kind = argv[6];

  std::signal(SIGTERM, [](int) { asked_to_end = 1; });  // descendants go on
  pid_t inside = 0;
  for (int i = 7; i < argc && inside == 0; ++i) {
    const std::string_view word = argv[i];
    if (word == "stubborn")
      std::signal(SIGTERM, SIG_IGN);
    else if (word == "child")
      start_descendant(record, 1, false, false);
    else if (word == "session")
      start_descendant(record, 2, true, false);
    else if (word == "orphan")
      start_descendant(record, 3, true, true);
    else if (word == "elsewhere")
      start_descendant(record, elsewhere, false, true);
    else if (word == "--")
      inside = run_inside(argv + i + 1);
    else if (word == "careless")
      std::signal(SIGTERM, SIG_DFL);
  }

  const auto goes_on = [&] {
    const bool is_waiting = inside != 0 && ::waitpid(inside, nullptr, WNOHANG) == 0;
    return is_waiting || (asked_to_end == 0 && asked_to_finish == 0 && boottime() < end);
  };
  do {
    stamp(record, 0);
    if (kind == "write")
      work.write();
    else if (kind == "read")
      work.read();
    else
      pause_ms(2);
    stamp(record, 0);
  } while (goes_on());
  end_descendants(record);
  record.done = asked_to_end == 0 ? 1 : 0;
  stamp(record, 0);
  return 0;
}
