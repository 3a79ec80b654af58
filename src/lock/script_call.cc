#include "lock/script_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/word.h"
#include "redis/reply.h"

namespace rlock::lock {
namespace {

constexpr Milliseconds longest_round_trip{2000};  // to a server of a quorum, its handshake included

/// One question to several servers.
class Round {
 public:
  Round(std::span<redis::Server> servers, const Request& request, Deadline deadline)
      : servers_(servers), deadline_(deadline), calls_(servers.size()), answers_(servers.size()) {
    const Deadline late = servers.size() > 1 ? std::max(deadline, BootClock::now() + longest_round_trip) : deadline;
    for (std::size_t i = 0; i < servers.size(); ++i) calls_[i].emplace(servers[i], request, late);
  }

  std::vector<CallResult> finish(const Grace& grace, OpenCalls* open) {
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
      wait(cut);
    }
    give_up_on_stragglers(open != nullptr);
    if (open != nullptr)
      *open = std::move(calls_);
    return std::move(answers_);
  }

 private:
  /// True while a server has not answered.
  bool advance() {
    bool any_open = false;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!calls_[i])
        continue;
      answers_[i] = calls_[i]->advance();
      if (std::holds_alternative<std::monostate>(answers_[i]))
        any_open = true;
      else
        calls_[i].reset();
    }
    return any_open;
  }

  void give_up_on_stragglers(bool are_kept) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!calls_[i])
        continue;
      const std::string& url = servers_[i].address().url;
      servers_[i].log().step([&] { return fmt::format("{}: {} did not answer in time", calls_[i]->name(), url); });
      answers_[i] = Error{ExitCode::unavailable, url + ": no answer in time"};
      if (!are_kept)
        calls_[i]->abandon();
    }
  }

  void wait(Deadline cut) {
    std::vector<pollfd> fds;
    Deadline until = cut;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!calls_[i])
        continue;
      fds.push_back(servers_[i].interest());
      until = std::min(until, servers_[i].deadline());
    }
    servers_[0].loop().wait(fds, until);
  }

  std::span<redis::Server> servers_;
  Deadline deadline_;
  OpenCalls calls_;
  std::vector<CallResult> answers_;
};

}  // namespace

Call::Call(redis::Server& server, Request request, Deadline deadline)
    : server_(&server), request_(std::move(request)), deadline_(deadline) {
  server_->begin({request_.command}, deadline_);
}

/// Sends it by SCRIPT LOAD, since newer servers forget the scripts of EVAL when there are many of them; after that by
/// EVAL. The asker has become older meanwhile, and must not seem younger than others that asked after it.
void Call::send_script() {
  if (request_.age > 0)
    request_.command[request_.age] = std::to_string(time_since(request_.since).count());
  if (form_ == Form::digest) {
    form_ = Form::loaded;
    server_->begin({{"SCRIPT", "LOAD", std::string{request_.script->source}}, request_.command}, deadline_);
  } else {
    form_ = Form::source;
    server_->begin({with_source(request_)}, deadline_);
  }
}

CallResult Call::advance() {
  always(!is_over_, "no answer is read twice");
  try {
    if (!server_->advance())
      return {};
    auto replies = server_->take_replies();
    const bool is_unknown = request_.script != nullptr && !replies.empty() && replies.back().is_error("NOSCRIPT");
    if (is_unknown && form_ != Form::source) {
      server_->log().step([&] { return fmt::format("{}: sending the script to {}", name(), server_->address().url); });
      send_script();
      return advance();
    }
    always(replies.size() == (form_ == Form::loaded ? 2U : 1U), "an answer is credited to its own request");
    redis::check_reply(server_->address(), replies.back());
    Fields answer{server_->address(), std::move(replies.back())};
    is_over_ = true;
    server_->log().step([&] { return fmt::format("{}: {} answers {}", name(), answer.server(), answer.outcome()); });
    return answer;
  } catch (const Error& error) {
    is_over_ = true;
    server_->log().step([&] { return fmt::format("{}: {}", name(), error.what()); });
    return error;
  }
}

void Call::abandon() { server_->abandon(); }

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

redis::Command with_source(const Request& request) {
  redis::Command command = request.command;
  command[0] = "EVAL";
  command[1] = request.script->source;
  return command;
}

std::vector<CallResult> call_everywhere(
    std::span<redis::Server> servers, const Request& request, Deadline deadline, const Grace& grace, OpenCalls* open) {
  return Round{servers, request, deadline}.finish(grace, open);
}

Fields call_script(redis::Server& server, const Request& request, Deadline deadline) {
  auto answers = call_everywhere({&server, 1}, request, deadline);
  if (const auto* error = std::get_if<Error>(&answers[0]))
    throw *error;
  return std::get<Fields>(std::move(answers[0]));
}

}  // namespace rlock::lock
