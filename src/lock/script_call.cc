#include "lock/script_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "redis/refusal.h"

namespace rlock::lock {
namespace {

constexpr Milliseconds longest_round_trip{2000};  // to a server of a quorum, its handshake included

/// One question to several servers. A server that answers too late keeps its connection: it may be in time for the next
/// question.
class Round {
 public:
  Round(std::span<redis::Server> servers, const Request& request, Deadline deadline)
      : servers_(servers),
        request_(request),
        deadline_(deadline),
        late_(servers.size() > 1 ? std::max(deadline, BootClock::now() + longest_round_trip) : deadline),
        answers_(servers.size()) {
    for (redis::Server& server : servers_) server.begin({request_.command}, late_);
  }

  std::vector<CallResult> finish(Loop& loop, const Grace& grace) {
    const auto start = BootClock::now();
    std::optional<BootClock::time_point> enough;  // when the answers began to suffice
    while (advance()) {
      const auto now = BootClock::now();
      Deadline cut = deadline_;
      if (const auto least = grace(answers_)) {
        enough = enough.value_or(now);
        cut = std::min(deadline_, *enough + std::max<BootClock::duration>(*enough - start, *least));
      }
      if (now >= cut)
        break;
      wait(loop, cut);
    }
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (is_open(i))
        abandon(i);
    }
    return std::move(answers_);
  }

 private:
  bool is_open(std::size_t i) const { return std::holds_alternative<std::monostate>(answers_[i]); }

  /// True while a server has not answered.
  bool advance() {
    bool any_open = false;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!is_open(i))
        continue;
      try {
        advance(i);
      } catch (const Error& error) {
        servers_[i].log().step([&] { return fmt::format("{}: {}", name_of_call(), error.what()); });
        answers_[i] = error;
      }
      any_open = any_open || is_open(i);
    }
    return any_open;
  }

  void advance(std::size_t i) {
    redis::Server& server = servers_[i];
    if (!server.advance())
      return;
    auto replies = server.take_replies();
    if (request_.script != nullptr && replies[0].is_error("NOSCRIPT")) {
      server.log().step(
          [&] { return fmt::format("{}: sending the script to {}", name_of_call(), server.address().url); });
      server.begin({with_source(request_)}, late_);
      if (!server.advance())
        return;
      replies = server.take_replies();
    }
    redis::check_reply(server.address(), replies[0]);
    const Fields& answer = answers_[i].emplace<Fields>(server.address(), std::move(replies[0]));
    server.log().step(
        [&] { return fmt::format("{}: {} answers {}", name_of_call(), answer.server(), answer.outcome()); });
  }

  std::string_view name_of_call() const {
    return request_.script != nullptr ? request_.script->name : request_.command.front();
  }

  void abandon(std::size_t i) {
    servers_[i].abandon();
    servers_[i].log().step(
        [&] { return fmt::format("{}: {} has not answered in time", name_of_call(), servers_[i].address().url); });
    answers_[i] = Error{ExitCode::unavailable, servers_[i].address().url + ": no answer in time"};
  }

  void wait(Loop& loop, Deadline cut) {
    std::vector<pollfd> fds;
    Deadline until = cut;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!is_open(i))
        continue;
      fds.push_back(servers_[i].interest());
      until = std::min(until, servers_[i].deadline());
    }
    loop.wait(fds, until);
  }

  std::span<redis::Server> servers_;
  const Request& request_;
  Deadline deadline_;  // of the round
  Deadline late_;      // until then a late answer does not cost the connection
  std::vector<CallResult> answers_;
};

}  // namespace

Fields::Fields(const redis::Address& from, redis::Reply reply) : server_(from.url), reply_(std::move(reply)) {
  if (reply_.kind != redis::Reply::Kind::array)
    unexpected();
  outcome_ = text();
}

std::string_view Fields::last() const {
  const bool is_text = !at_end() && reply_.elements.back().kind == redis::Reply::Kind::text;
  return is_text ? std::string_view{reply_.elements.back().text} : std::string_view{};
}

std::string Fields::text() {
  if (next_ >= reply_.elements.size() || reply_.elements[next_].kind != redis::Reply::Kind::text)
    unexpected();
  return std::move(reply_.elements[next_++].text);
}

long long Fields::number() {
  const auto value = parse_number(text(), -largest_whole, largest_whole);
  if (!value)
    unexpected();
  return *value;
}

void Fields::unexpected() const {
  throw Error{ExitCode::unavailable, fmt::format("{}: unexpected answer to a script", server_), true};
}

Request script_request(const Script& script, const ScriptArguments& arguments) {
  redis::Command command{"EVALSHA", std::string{script.sha1}, std::to_string(arguments.keys.size())};
  command.insert(command.end(), arguments.keys.begin(), arguments.keys.end());
  command.insert(command.end(), arguments.values.begin(), arguments.values.end());
  return {.command = std::move(command), .script = &script};
}

redis::Command with_source(const Request& request) {
  redis::Command command = request.command;
  command[0] = "EVAL";
  command[1] = request.script->source;
  return command;
}

std::vector<CallResult> call_everywhere(
    Loop& loop, std::span<redis::Server> servers, const Request& request, Deadline deadline, const Grace& grace) {
  return Round{servers, request, deadline}.finish(loop, grace);
}

Fields call_script(Loop& loop, redis::Server& server, const Request& request, Deadline deadline) {
  auto answers = call_everywhere(loop, {&server, 1}, request, deadline);
  if (const auto* error = std::get_if<Error>(&answers[0]))
    throw *error;
  return std::get<Fields>(std::move(answers[0]));
}

}  // namespace rlock::lock
