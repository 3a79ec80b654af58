#include "run/pid_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "base/error.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "run/wording.h"

namespace rlock::run {
namespace {

std::string describe_loss(const Renewer& renewer) {
  if (renewer.state() == Renewer::State::evicted)
    return lock::describe(renewer.eviction());
  return renewer.is_held() ? "the lease could not be renewed in time" : fmt::format("lost: {}", how_locks_vanish);
}

unsigned most_descriptors() {
  constexpr rlim_t most_worth_closing = 1U << 20U;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<unsigned>(std::min(limit.rlim_max, most_worth_closing));
}

void close_between(int first, unsigned last) {
  if (static_cast<unsigned>(first) > last || ::close_range(static_cast<unsigned>(first), last, 0) == 0)
    return;
  // The kernel is older than 5.9, or a seccomp filter refuses close_range.
  for (unsigned fd = static_cast<unsigned>(first); fd <= std::min(last, most_descriptors()); ++fd)
    ::close(static_cast<int>(fd));
}

/// What the keeper says to its witness.
struct Promise {
  Deadline until = never;
};

/// Returns what is wrong with the keeper, or nothing when the process has ended or the keeper has taken its leave.
std::optional<std::string_view> watch_keeper(const Process& process, const Fd& line) {
  const BootTimer timer;
  Promise promise;
  for (;;) {
    timer.set(promise.until);
    std::array<pollfd, 3> fds{{{line.get(), POLLIN, 0}, {process.fd(), POLLIN, 0}, {timer.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      return "the process that renews the lock is no longer watched";
    if (fds[1].revents != 0)
      return std::nullopt;
    if (fds[0].revents != 0) {
      if (::recv(line.get(), &promise, sizeof promise, MSG_DONTWAIT) == sizeof promise)
        continue;
      if (promise.until == never)
        return std::nullopt;
      return "the process that renewed the lock was killed";
    }
    if (BootClock::now() >= promise.until)
      return "the process that renews the lock is stopped or hangs";
  }
}

void tell_loss(const PidPlan& plan, const Process& process, std::string_view why) {
  process.tell(fmt::format("{}: {}; the script gets {}", plan.name.text(), why, signal_name(plan.signal)));
  process.signal(plan.signal);
}

}  // namespace

void close_all_but(std::vector<int> kept) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) null < 0 ? ::close(fd) : ::dup2(null, fd);
  std::sort(kept.begin(), kept.end());
  int next = 3;
  for (const int fd : kept) {
    if (fd < next)
      continue;
    close_between(next, static_cast<unsigned>(fd - 1));
    next = fd + 1;
  }
  close_between(next, ~0U);
}

Witness Witness::start(const PidPlan& plan, const Process& process) {
  auto [keeper, witness] = make_socket_pair();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the witness process", errno);
  if (pid > 0)
    return Witness{std::move(keeper)};
  stand_apart("watch");
  std::vector<int> needed = process.descriptors();
  needed.push_back(witness.get());
  close_all_but(std::move(needed));
  block_all_signals();  // whoever signals both of us means the job, and the keeper tells that
  try {
    if (const auto fault = watch_keeper(process, witness)) {
      (void)::send(witness.get(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);  // the keeper may be continued at any moment
      tell_loss(plan, process, *fault);
    }
  } catch (const std::exception&) {
    process.signal(plan.signal);
  }
  ::_exit(0);
}

void Witness::expect_before(Deadline deadline) const {
  const Promise promise{.until = deadline};
  (void)::send(line_.get(), &promise, sizeof promise, MSG_NOSIGNAL | MSG_DONTWAIT);  // without a witness we go on alone
}

bool Witness::tells_loss() const {
  char word = 0;
  return ::recv(line_.get(), &word, sizeof word, MSG_DONTWAIT) == sizeof word;
}

/// The keeper itself tells the process when the lease reaches the time for that, so this is a little later.
Deadline witness_limit(const lock::Lease& lease) { return lease.term_at() + lease.tolerance(); }

PidKeeper::PidKeeper(PidPlan plan, const Process& process, const Witness& witness, std::span<redis::Server> servers)
    : plan_(std::move(plan)),
      process_(&process),
      witness_(&witness),
      loop_(servers.front().loop()),
      signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT}),
      lock_(servers, plan_.name, plan_.max_lease) {
  plan_.claim.owner.pid = ::getpid();
  loop_.watch(process.fd(), [this] {
    process_has_ended_ = true;
    loop_.unwatch(process_->fd());
  });
  // Whoever sends us a signal wants the job to end, as with `run`. The lock is released when it has ended.
  loop_.watch(signals_.fd(), [this] {
    while (signals_.next()) process_->signal(plan_.signal);
  });
  loop_.watch(alarm_.fd(), [this] { alarm_.set(never); });
}

void PidKeeper::keep(const lock::Granted& grant) {
  Renewer renewer{log_, lock_, plan_.claim, grant, plan_.lease};
  renew(renewer);  // connects, so that we hear at once when somebody evicts us
  hold(renewer);
  witness_->expect_before(never);
  if (renewer.state() == Renewer::State::released)
    return;
  const bool is_told = !process_has_ended_;
  if (is_told)
    stop(renewer);
  const bool is_evicted = renewer.state() == Renewer::State::evicted;  // Redis knows by whom
  const bool is_lost = renewer.state() == Renewer::State::lost;        // then only the history wants to know
  if (process_has_ended_ || is_lost)
    release(is_lost ? Deadline::min() : renewer.lease().end(), is_evicted ? "" : is_told || is_lost ? "lost" : "ended");
}

/// Returns when the process has ended, the lock is no longer held, or so little of the lease is left that the process
/// must stop.
void PidKeeper::hold(Renewer& renewer) {
  while (!process_has_ended_ && renewer.is_held()) {
    const Deadline limit = renewer.lease().term_at();
    if (BootClock::now() >= limit)
      return;
    if (BootClock::now() >= renewer.next()) {
      alarm_.set(limit);
      renew(renewer);
    } else {
      alarm_.set(std::min(renewer.next(), limit));
      renewer.sleep(std::min(renewer.next(), limit));
    }
  }
}

void PidKeeper::renew(Renewer& renewer) {
  if (renewer.attempt(renewer.lease().term_at()))
    witness_->expect_before(witness_limit(renewer.lease()));
}

/// Tells the process that nobody renews the lock any more. It has the rest of the lease in which to end.
void PidKeeper::stop(const Renewer& renewer) {
  if (!witness_->tells_loss())  // it has where we were stopped for long, and are continued
    tell_loss(plan_, *process_, describe_loss(renewer));
  const Deadline end = renewer.state() == Renewer::State::lost ? BootClock::now() : renewer.lease().end();
  alarm_.set(end);
  while (!process_has_ended_ && BootClock::now() < end) loop_.wait(end);
}

/// `how`: the word of the history for the end. The process's status is not ours to know.
void PidKeeper::release(Deadline lease_end, std::string_view how) {
  const lock::End end{.word = std::string{how}};
  try {
    const auto attempt = [&](Deadline deadline) { return lock_.release(plan_.claim, end, deadline); };
    (void)lock::release_in_time(lock_, plan_.timeout, lease_end, log_, attempt, [] {});
  } catch (const Error&) {
    // The lease runs out by itself.
  }
}

}  // namespace rlock::run
