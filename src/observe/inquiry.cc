#include "observe/inquiry.h"

#include <algorithm>
#include <vector>

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

}  // namespace

void Inquirer::ask(redis::Server& server, const lock::LockName& name) {
  try {
    inquiry_.take(name, lock::call_script(loop_, server, inquiry_.ask(name), BootClock::now() + timeout_));
  } catch (const Error& error) {
    if (!is_about_the_value(error))
      throw;
    inquiry_.pass_over(name, error);
  }
}

void Inquirer::ask_all(Addressee addressee, std::span<const lock::LockName> names) {
  if (names.empty())
    return;
  ask(addressee.whole, names.front());  // loads the script where the server does not have it yet
  for (std::size_t begin = 1; begin < names.size(); begin += batch)
    ask_at_once(addressee, names.subspan(begin, std::min(batch, names.size() - begin)));
}

void Inquirer::ask_at_once(Addressee addressee, std::span<const lock::LockName> names) {
  std::vector<redis::Command> commands;
  for (const lock::LockName& name : names) commands.push_back(inquiry_.ask(name).command);
  auto replies = redis::call(loop_, addressee.node, commands, BootClock::now() + timeout_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (must_be_asked_again(replies[i])) {
      ask(addressee.whole, names[i]);
    } else if (replies[i].is_error()) {
      pass_over(addressee.node, names[i], replies[i]);
    } else {
      budget_.spend(replies[i]);
      inquiry_.take(names[i], {addressee.node.address(), std::move(replies[i])});
    }
  }
}

void Inquirer::pass_over(const redis::Server& server, const lock::LockName& name, const redis::Reply& reply) const {
  const Error error = redis::refusal(reply).about(server.address().url);
  if (!is_about_the_value(error))
    throw Error{error};
  inquiry_.pass_over(name, error);
}

}  // namespace rlock::observe
