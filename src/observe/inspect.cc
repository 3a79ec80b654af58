#include "observe/inspect.h"

#include <algorithm>

#include "redis/exchange.h"
#include "redis/refusal.h"

namespace rlock::observe {
namespace {

constexpr std::size_t batch = 50;  // script calls in one exchange, since their answers may be long

/// Whether the key has moved or is moving to another node of the cluster, or the node does not have the script yet.
bool must_be_asked_again(const redis::Reply& reply) {
  return reply.is_error("MOVED") || reply.is_error("ASK") || reply.is_error("TRYAGAIN") || reply.is_error("NOSCRIPT");
}

/// Whether the script failed on what is stored there, as Redis 5 and 6, or 7 and later say it. Any other failure is one
/// of the server.
bool is_about_the_value(const Error& failure) {
  const std::string_view words = failure.what();
  return failure.code() != ExitCode::no_permission &&
         (words.find("user_script:") != std::string_view::npos || words.find("WRONGTYPE") != std::string_view::npos);
}

/// Carries out an inquiry.
class Inquirer {
 public:
  Inquirer(Loop& loop, const Inquiry& inquiry, Milliseconds timeout, Budget& budget)
      : loop_(loop), inquiry_(inquiry), timeout_(timeout), budget_(budget) {}

  void ask(redis::Server& whole, const lock::LockName& name) {
    try {
      inquiry_.take(name, lock::call_script(loop_, whole, inquiry_.ask(name), BootClock::now() + timeout_));
    } catch (const Error& error) {
      if (!is_about_the_value(error))
        throw;
      inquiry_.pass_over(name, error);
    }
  }

  void ask(redis::Server& server, redis::Server& whole, std::span<const lock::LockName> names) {
    std::vector<redis::Command> commands;
    for (const lock::LockName& name : names) commands.push_back(inquiry_.ask(name).command);
    auto replies = redis::call(loop_, server, commands, BootClock::now() + timeout_);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (replies[i].is_error()) {
        must_be_asked_again(replies[i]) ? ask(whole, names[i]) : pass_over(server, names[i], replies[i]);
        continue;
      }
      budget_.spend(replies[i]);
      inquiry_.take(names[i], {server.address(), std::move(replies[i])});
    }
  }

 private:
  void pass_over(const redis::Server& server, const lock::LockName& name, const redis::Reply& reply) const {
    const Error error = redis::refusal(reply).about(server.address().url);
    if (!is_about_the_value(error))
      throw Error{error};
    inquiry_.pass_over(name, error);
  }

  Loop& loop_;
  const Inquiry& inquiry_;
  Milliseconds timeout_;
  Budget& budget_;
};

}  // namespace

void inquire(Loop& loop,
             redis::Server& server,
             redis::Server& whole,
             const std::vector<lock::LockName>& names,
             const Inquiry& inquiry,
             Milliseconds timeout,
             Budget& budget) {
  if (names.empty())
    return;
  Inquirer inquirer{loop, inquiry, timeout, budget};
  inquirer.ask(whole, names.front());  // loads the script where the server does not have it yet
  const std::span<const lock::LockName> all{names};
  for (std::size_t begin = 1; begin < all.size(); begin += batch)
    inquirer.ask(server, whole, all.subspan(begin, std::min(batch, all.size() - begin)));
}

lock::Request status_request(const lock::LockName& name) {
  return lock::script_request(lock::scripts::status, {.keys = name.keys(), .values = {}});
}

LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline) {
  return read_facts(name, lock::call_script(loop, server, status_request(name), deadline));
}

}  // namespace rlock::observe
