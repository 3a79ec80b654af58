#include "run/background.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/loop.h"

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
constexpr char acknowledgement = 1;
constexpr std::chrono::seconds longest_acknowledgement{2};

std::optional<Trust> await_trust(const Fd& line, const Witness& witness, const lock::LeaseTerms& terms) {
  Trust trust{};
  ssize_t count = 0;
  do {
    count = ::read(line.get(), &trust, sizeof trust);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof trust)
    return std::nullopt;
  witness.expect_before(witness_limit(lock::Lease{terms, trust.grant.sent, trust.grant.unconfirmed}));
  if (::send(line.get(), &acknowledgement, sizeof acknowledgement, MSG_NOSIGNAL) == sizeof acknowledgement)
    return trust;
  witness.expect_before(never);
  return std::nullopt;
}

bool await_acknowledgement(const Fd& line, Deadline deadline) {
  Loop loop;
  pollfd answer{line.get(), POLLIN, 0};
  Loop::Wake wake{};
  do {
    wake = loop.wait({&answer, 1}, deadline);
  } while (wake == Loop::Wake::event);
  char word = 0;
  return wake == Loop::Wake::ready && ::recv(line.get(), &word, sizeof word, MSG_DONTWAIT) == sizeof word;
}

/// All that the background process does.
[[noreturn]] void serve(const PidPlan& plan, const Process& process, std::span<redis::Server> servers, const Fd& line) {
  ::setsid();
  (void)!::chdir("/");  // somebody may want to unmount the file system of the caller's directory
  try {
    const Witness witness = Witness::start(plan, process);
    std::vector<int> needed = process.descriptors();
    needed.insert(needed.end(), {line.get(), witness.fd()});
    close_all_but(std::move(needed));
    if (const auto trust = await_trust(line, witness, plan.lease)) {
      PidPlan trusted = plan;
      trusted.claim.token = lock::Token::parse({trust->token.data(), trust->token.size()}).value();
      trusted.claim.level = lock::Level::parse({trust->level.data(), trust->level.size()}).value();
      PidKeeper{std::move(trusted), process, witness, servers}.keep(trust->grant);
    }
  } catch (const std::exception&) {
    ::_exit(1);  // nobody renews the lock from here on, and the witness says so
  }
  ::_exit(0);
}

}  // namespace

Background Background::start(const PidPlan& plan, const Process& process, std::span<redis::Server> servers) {
  auto [ours, theirs] = make_socket_pair();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the background process", errno);
  if (pid == 0)
    serve(plan, process, servers, theirs);
  return Background{plan.lease, pid, std::move(ours)};
}

void Background::entrust(const lock::Claim& claim, const lock::Granted& grant) const {
  Trust trust{.token = {}, .level = {}, .grant = grant};
  claim.token.text().copy(trust.token.data(), trust.token.size());
  claim.level.text().copy(trust.level.data(), trust.level.size());
  const lock::Lease lease{terms_, grant.sent, grant.unconfirmed};
  const Deadline latest = std::min(BootClock::now() + longest_acknowledgement, lease.term_at());
  if (::send(line_.get(), &trust, sizeof trust, MSG_NOSIGNAL) != sizeof trust || !await_acknowledgement(line_, latest))
    throw Error{ExitCode::internal, "the background process did not answer; the lock is given back"};
}

}  // namespace rlock::run
