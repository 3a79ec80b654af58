#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "random.h"

namespace sim {

using Nanos = std::int64_t;  // true time of the world, from its beginning; no clock in it need show that
constexpr Nanos micro = 1000;
constexpr Nanos milli = 1000 * micro;
constexpr Nanos second = 1000 * milli;
constexpr Nanos forever = INT64_MAX / 2;  // so that a sum with it does not overflow

/// Simulated time: a queue of what happens when. Where nothing is random but what the seed decides, the same seed gives
/// the same world.
class World {
 public:
  Nanos now() const { return now_; }
  void at(Nanos when, std::function<void()> event);
  /// Lets it all happen, until nothing is left or it is `end`.
  void run(Nanos end);

  /// Something has moved. A world in which far too much does so is accused of never coming to rest.
  void step();

  /// A line of the story. It is kept only where somebody reads it.
  void tell(std::string_view who, std::string_view what);
  bool tells() const { return tells_; }
  void keep_story() { tells_ = true; }
  const std::string& story() const { return story_; }
  /// A number that differs between worlds in which something else has happened.
  std::uint64_t fingerprint() const { return fingerprint_; }

  /// Something that must never happen has. The first one counts.
  void accuse(std::string what);
  const std::string& accusation() const { return accusation_; }

 private:
  struct Event {
    Nanos when;
    std::uint64_t order;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return when != other.when ? when > other.when : order > other.order; }
  };
  std::priority_queue<Event> events_;
  Nanos now_ = 0;
  std::uint64_t order_ = 0;
  long steps_ = 0;
  std::uint64_t fingerprint_ = 0;
  bool tells_ = false;
  std::string story_;
  std::string accusation_;
};

/// A clock that does not run at the true rate, and does not show the true time.
struct Clock {
  double rate = 1;
  Nanos offset = 0;

  Nanos read(Nanos now) const { return offset + static_cast<Nanos>(static_cast<double>(now) * rate); }
  /// The true time at which it shows that.
  Nanos when(Nanos shown) const { return static_cast<Nanos>(static_cast<double>(shown - offset) / rate) + 1; }
};

/// Thrown by system calls of a process that was killed, so that its stack is cleared. It leaves no other trace: from
/// then on all its calls fail. It is a bad_alloc because rlock expects that anywhere, and does not try again.
struct Killed : std::bad_alloc {
  const char* what() const noexcept override { return "killed"; }
};

struct Wire;

/// A machine on which one process runs, as a fiber: it has a stack of its own, and gives up control only where it
/// waits. The process believes that it is alone, and speaks with the world through the system calls of kernel.cc.
class Machine {
 public:
  Machine(World& world, std::string name, Random random, Clock clock);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  void start(std::function<void()> program);
  /// Whether the program has ended.
  bool is_over() const { return over_; }

  // What the kernel needs. It is the process itself that calls these.
  static Machine* running();
  /// Sleeps until `deadline`, or until wake(). Throws Killed.
  void sleep(Nanos deadline);
  std::map<int, Wire*> descriptors;
  int next_descriptor = 1'000'000;
  Random random;

  // What happens to it.
  void wake();
  void freeze();
  void thaw();
  void kill();
  bool is_dead() const { return dead_; }
  bool is_frozen() const { return frozen_; }

  World& world() { return world_; }
  const std::string& name() const { return name_; }
  Clock clock;

 private:
  static void main();
  void resume();
  void enter();

  World& world_;
  std::string name_;
  std::function<void()> program_;
  std::unique_ptr<char[]> stack_;
  ucontext_t context_{};
  ucontext_t outside_{};
  const void* outside_stack_ = nullptr;  // known to the address sanitizer only
  std::size_t outside_size_ = 0;
  struct {  // what the C++ runtime keeps of each thread, and must of each fiber
    void* caught = nullptr;
    unsigned uncaught = 0;
  } exceptions_;
  std::uint64_t sleep_ = 0;  // its number
  bool asleep_ = false, woken_ = false, frozen_ = false, dead_ = false, over_ = true;
};

}  // namespace sim
