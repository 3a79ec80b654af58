#include "run/hold_pid.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <type_traits>

#include "base/error.h"
#include "lock/conflict.h"
#include "lock/retry.h"

namespace rlock::run {
namespace {

/// The granted lock, as it is sent over the socket between the two processes.
struct Trust {
  std::array<char, lock::Token::length> token;
  std::array<char, lock::Level::length> level;
  lock::Granted grant;
};
static_assert(std::is_trivially_copyable_v<Trust>);

/// The answer to it. It proves that the process is alive: sending to one that was killed succeeds until its descriptors
/// are closed.
constexpr char taken = 1;
constexpr std::chrono::seconds longest_taking{2};

unsigned most_descriptors() {
  constexpr rlim_t sane = 1U << 20U;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<unsigned>(std::min(limit.rlim_max, sane));
}

/// Closes every descriptor but two. Nothing of the caller's may stay open, such as a pipe that `$(...)` reads or a file
/// that flock(1) locked.
void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  const auto close_between = [](int first, unsigned last) {
    if (static_cast<unsigned>(first) > last || ::close_range(static_cast<unsigned>(first), last, 0) == 0)
      return;
    // The kernel is older than 5.9, or a seccomp filter refuses close_range.
    for (unsigned fd = static_cast<unsigned>(first); fd <= std::min(last, most_descriptors()); ++fd)
      ::close(static_cast<int>(fd));
  };
  close_between(3, static_cast<unsigned>(low - 1));
  close_between(low + 1, static_cast<unsigned>(high - 1));
  close_between(high + 1, ~0U);
}

std::optional<Trust> await_trust(const Fd& line) {
  Trust trust{};
  ssize_t count = 0;
  do {
    count = ::read(line.get(), &trust, sizeof trust);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof trust || ::send(line.get(), &taken, sizeof taken, MSG_NOSIGNAL) != sizeof taken)
    return std::nullopt;
  return trust;
}

bool await_taken(const Fd& line, Deadline deadline) {
  Loop loop;
  pollfd answer{line.get(), POLLIN, 0};
  Loop::Wake wake{};
  do {
    wake = loop.wait({&answer, 1}, deadline);
  } while (wake == Loop::Wake::event);
  char word = 0;
  return wake == Loop::Wake::ready && ::recv(line.get(), &word, sizeof word, MSG_DONTWAIT) == sizeof word;
}

std::string describe_loss(const Renewer& renewer) {
  if (renewer.state() == Renewer::State::evicted)
    return lock::describe(renewer.eviction());
  return renewer.state() == Renewer::State::held ? "the lease could not be renewed in time" : "the lock is lost";
}

}  // namespace

PidKeeper::PidKeeper(HoldPlan plan, const Process& process, std::span<redis::Server> servers)
    : plan_(std::move(plan)),
      process_(&process),
      signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT}),
      lock_(servers, plan_.name, plan_.max_lease) {
  plan_.owner.pid = ::getpid();
  plan_.claim.owner = plan_.owner.encode();
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
  Renewer renewer{loop_, log_, lock_, plan_.claim, grant, plan_.lease};
  renewer.attempt(renewer.lease().term_at());  // connects, so that we hear at once when somebody evicts us
  hold(renewer);
  if (renewer.state() == Renewer::State::released)
    return;
  if (!process_has_ended_)
    stop(renewer);
  if (process_has_ended_ && renewer.state() != Renewer::State::lost)
    release();
}

/// Returns when the process has ended, the lock is no longer held, or so little of the lease is left that the process
/// must stop.
void PidKeeper::hold(Renewer& renewer) {
  while (!process_has_ended_ && renewer.state() == Renewer::State::held) {
    const Deadline limit = renewer.lease().term_at();
    if (BootClock::now() >= limit)
      return;
    if (BootClock::now() >= renewer.next()) {
      alarm_.set(limit);
      renewer.attempt(limit);
    } else {
      alarm_.set(std::min(renewer.next(), limit));
      renewer.sleep(std::min(renewer.next(), limit));
    }
  }
}

/// Tells the process that nobody renews the lock any more. It has the rest of the lease in which to end.
void PidKeeper::stop(const Renewer& renewer) {
  process_->tell(
      fmt::format("{}: {}; the process gets {}", plan_.name.text(), describe_loss(renewer), signal_name(plan_.signal)));
  process_->signal(plan_.signal);
  const Deadline end = renewer.state() == Renewer::State::lost ? BootClock::now() : renewer.lease().end();
  while (!process_has_ended_ && BootClock::now() < end) wait_until(end);
}

void PidKeeper::wait_until(Deadline deadline) {
  alarm_.set(deadline);
  loop_.wait(deadline);
}

void PidKeeper::release() {
  try {
    (void)lock::persist(loop_, lock_, plan_.timeout, BootClock::now() + plan_.timeout, [this](Deadline deadline) {
      return lock_.release(loop_, plan_.claim, {}, deadline);
    });
  } catch (const Error&) {
    // The lease runs out by itself.
  }
}

Background::Background(const HoldPlan& plan, const Process& process, std::span<redis::Server> servers)
    : terms_(plan.lease) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0)
    throw os_error("socketpair", errno);
  const Fd theirs{ends[0]};
  line_ = Fd{ends[1]};
  pid_ = ::fork();
  if (pid_ < 0)
    throw os_error("cannot start the background process", errno);
  if (pid_ > 0)
    return;
  ::setsid();
  close_all_but(theirs.get(), process.fd());
  (void)!::chdir("/");  // the caller's directory may be on a file system that is to be unmounted
  try {
    if (const auto trust = await_trust(theirs)) {
      HoldPlan trusted = plan;
      trusted.claim.token = lock::Token::parse({trust->token.data(), trust->token.size()}).value();
      trusted.claim.level = lock::Level::parse({trust->level.data(), trust->level.size()}).value();
      PidKeeper{std::move(trusted), process, servers}.keep(trust->grant);
    }
  } catch (const std::exception&) {
    process.signal(plan.signal);  // nobody renews the lock from here on
  }
  ::_exit(0);
}

void Background::entrust(const lock::Claim& claim, const lock::Granted& grant) const {
  Trust trust{.token = {}, .level = {}, .grant = grant};
  claim.token.text().copy(trust.token.data(), trust.token.size());
  claim.level.text().copy(trust.level.data(), trust.level.size());
  const lock::Lease lease{terms_, grant.sent, grant.unconfirmed};
  const Deadline latest = std::min(BootClock::now() + longest_taking, lease.term_at());
  if (::send(line_.get(), &trust, sizeof trust, MSG_NOSIGNAL) != sizeof trust || !await_taken(line_, latest))
    throw Error{ExitCode::internal, "the background process did not answer; the lock is given back"};
}

}  // namespace rlock::run
