#include "world.h"

#include <cxxabi.h>
#include <fmt/format.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include <cstring>
#include <utility>

namespace sim {
namespace {

constexpr long most_steps = 300'000;  // ten times as many as any world needs
constexpr std::size_t stack_size = 256UL * 1024;
Machine* current = nullptr;

/// Stacks are used again, since fresh memory costs more than a fiber's life.
std::vector<std::unique_ptr<char[]>>& spare_stacks() {
  static std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

#ifdef __SANITIZE_ADDRESS__
// The address sanitizer must know which stack is in use when an exception is thrown. `own` is for what it keeps of the
// stack that is left; it is null if nobody comes back to that.
void tell_leaving(void** own, const void* next, std::size_t size) { __sanitizer_start_switch_fiber(own, next, size); }
void tell_arrived(void* own, const void** before, std::size_t* size) {
  __sanitizer_finish_switch_fiber(own, before, size);
}
#else
void tell_leaving(void** /*own*/, const void* /*next*/, std::size_t /*size*/) {}
void tell_arrived(void* /*own*/, const void** /*before*/, std::size_t* /*size*/) {}
#endif

}  // namespace

void World::at(Nanos when, std::function<void()> event) {
  events_.push({std::max(when, now_), ++order_, std::move(event)});
}

void World::run(Nanos end) {
  while (!events_.empty() && events_.top().when <= end && accusation_.empty()) {
    const auto happen = std::move(const_cast<Event&>(events_.top()).happen);
    now_ = events_.top().when;
    events_.pop();
    step();
    happen();
  }
}

void World::step() {
  if (++steps_ == most_steps)
    accuse(fmt::format("the world does not come to rest: {} steps", steps_));
}

void World::tell(std::string_view who, std::string_view what) {
  for (const char c : what) fingerprint_ = fingerprint_ * 1099511628211U + static_cast<unsigned char>(c);
  fingerprint_ += static_cast<std::uint64_t>(now_);
  if (tells_)
    story_ += fmt::format("{:12.6f}  {:<8} {}\n", static_cast<double>(now_) / 1e9, who, what);
}

void World::accuse(std::string what) {
  tell("JUDGE", what);
  if (accusation_.empty())
    accusation_ = std::move(what);
}

Machine::Machine(World& world, std::string name, Random stream, Clock its_clock)
    : random(stream), clock(its_clock), world_(world), name_(std::move(name)) {}

Machine::~Machine() {
  if (!over_) {
    kill();
    frozen_ = false;
    while (!over_) enter();
  }
  if (stack_)
    spare_stacks().push_back(std::move(stack_));
}

void Machine::start(std::function<void()> program) {
  program_ = std::move(program);
  if (!stack_ && !spare_stacks().empty()) {
    stack_ = std::move(spare_stacks().back());
    spare_stacks().pop_back();
  } else if (!stack_) {
    stack_.reset(new char[stack_size]);
  }
  over_ = dead_ = asleep_ = woken_ = false;
  ::getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_size;
  context_.uc_link = nullptr;
  ::makecontext(&context_, main, 0);
  enter();
}

Machine* Machine::running() { return current; }

/// The bottom of every fiber's stack.
void Machine::main() {
  Machine& self = *current;
  tell_arrived(nullptr, &self.outside_stack_, &self.outside_size_);
  try {
    self.program_();
  } catch (const Killed&) {
  }
  self.over_ = true;
  tell_leaving(nullptr, self.outside_stack_, self.outside_size_);
  ::setcontext(&self.outside_);
}

void Machine::enter() {
  const auto swap_exceptions = [this] {
    auto* runtime = abi::__cxa_get_globals();
    auto mine = exceptions_;
    std::memcpy(&exceptions_, static_cast<void*>(runtime), sizeof exceptions_);
    std::memcpy(static_cast<void*>(runtime), &mine, sizeof mine);
  };
  asleep_ = woken_ = false;
  Machine* before = std::exchange(current, this);
  swap_exceptions();
  void* own = nullptr;
  tell_leaving(&own, stack_.get(), stack_size);
  ::swapcontext(&outside_, &context_);
  tell_arrived(own, nullptr, nullptr);
  swap_exceptions();
  current = before;
}

void Machine::sleep(Nanos deadline) {
  if (dead_)
    throw Killed{};
  asleep_ = true;
  const std::uint64_t number = ++sleep_;
  if (deadline != forever) {
    world_.at(deadline, [this, number] {
      if (sleep_ == number)
        resume();
    });
  }
  void* own = nullptr;
  tell_leaving(&own, outside_stack_, outside_size_);
  ::swapcontext(&context_, &outside_);
  tell_arrived(own, &outside_stack_, &outside_size_);
  if (dead_)
    throw Killed{};
}

/// A process does not run at the very moment at which it could.
void Machine::wake() {
  if (!asleep_ || woken_)
    return;
  woken_ = true;
  const Nanos delay = random.chance(2) ? random.between(0, 5 * milli) : random.between(5 * micro, 60 * micro);
  world_.at(world_.now() + delay, [this, number = sleep_] {
    if (sleep_ == number)
      resume();
  });
}

void Machine::resume() {
  if (frozen_)
    woken_ = true;
  else if (asleep_)
    enter();
}

void Machine::freeze() { frozen_ = true; }

void Machine::thaw() {
  frozen_ = false;
  if (asleep_)
    enter();  // what it waits for may have come meanwhile; if not, it waits on
}

/// Its descriptors are closed by whoever kills it, since the network must learn of that, or must not.
void Machine::kill() {
  dead_ = true;
  frozen_ = false;
  if (asleep_ && current == nullptr)
    enter();
}

}  // namespace sim
