#include "lock/request.h"

#include <array>
#include <string_view>
#include <vector>

#include "base/escape.h"
#include "lock/scripts.h"

namespace rlock::lock {
namespace {

struct ScriptArguments {
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

Request script_request(const Script& script, const ScriptArguments& arguments) {
  redis::Command command{"EVALSHA", std::string{script.sha1}, std::to_string(arguments.keys.size())};
  command.insert(command.end(), arguments.keys.begin(), arguments.keys.end());
  command.insert(command.end(), arguments.values.begin(), arguments.values.end());
  return {.command = std::move(command), .script = &script};
}

std::string text(Milliseconds duration) { return std::to_string(duration.count()); }

std::string text(Question::How how) {
  constexpr std::array<std::string_view, 4> words{"once", "queue", "reenter", "restore"};  // as the enumerators stand
  return std::string{words.at(static_cast<std::size_t>(how))};
}

/// Appends the options of acquire.lua. An ID and a slot of the calendar are both `once` there; an ID is
/// percent-encoded, so only a slot has a colon. A run inside another names no slot: the other may go on past midnight.
void add_options(const Claim& claim, Question::How how, std::vector<std::string>& words) {
  if (claim.min_hold > Milliseconds{0})
    words.push_back("hold=" + text(claim.min_hold));
  if (claim.has_keeper)
    words.emplace_back("kept=1");
  if (claim.polls)
    words.emplace_back("poll=1");
  if (claim.latest)
    words.emplace_back("latest=1");
  if (claim.replace)
    words.emplace_back("replace=1");
  if (claim.first)
    words.emplace_back("first=1");
  if (claim.max_waiting)
    words.push_back("max-waiting=" + std::to_string(*claim.max_waiting));
  if (claim.waiter)
    words.push_back("waiter=" + claim.waiter->text());
  if (claim.once)
    words.push_back("once=" + percent_encode(*claim.once));
  if (claim.calendar_slot && how != Question::How::reenter)
    words.push_back("once=" + claim.calendar_slot->id);
  if (claim.backoff)
    words.push_back("backoff=" + text(claim.backoff->first) + "-" + text(claim.backoff->most));
  if (claim.attempts)
    words.push_back("attempts=" + std::to_string(*claim.attempts));
  if (claim.once_per)
    words.push_back("per=" + text(*claim.once_per));
}

}  // namespace

Request acquire_request(const LockName& name, const Claim& claim, const Question& question, Milliseconds max_lease) {
  ScriptArguments arguments{.keys = name.keys(claim.level.text(), claim.token.text()),
                            .values = {claim.token.text(),
                                       claim.level.text(),
                                       std::to_string(claim.capacity.value),
                                       text(claim.ttl),
                                       text(question.how),
                                       question.ticket,
                                       text(question.waited),
                                       claim.owner.encode(),
                                       text(max_lease)}};
  add_options(claim, question.how, arguments.values);
  Request request = script_request(scripts::acquire, arguments);
  request.age = 3 + arguments.keys.size() + 6;  // after EVALSHA, the digest and the number of keys
  request.since = BootClock::now() - question.waited;
  return request;
}

Request settle_request(const LockName& name, const Claim& claim, Fence fence, Settling settling) {
  const std::string waiter = claim.waiter ? claim.waiter->text() : "";
  return script_request(
      scripts::settle,
      {.keys = name.keys(),
       .values = {claim.token.text(), fence.text(), waiter, std::to_string(static_cast<int>(settling))}});
}

/// Sent with the script's text: the process may be gone before it could hear that a server does not know the script.
Request cancel_request(const LockName& name, const Claim& claim, const std::string& waiter, bool timed_out) {
  ScriptArguments arguments{.keys = name.keys(claim.level.text(), claim.token.text()),
                            .values = {claim.token.text(), claim.level.text(), waiter}};
  if (timed_out)
    arguments.values.push_back(claim.owner.encode());
  Request request = script_request(scripts::cancel, arguments);
  request.command = with_source(request);
  return request;
}

Request renew_request(const LockName& name, const Token& token, const std::string& level, Milliseconds ttl) {
  return script_request(scripts::renew, {.keys = {name.key()}, .values = {token.text(), text(ttl), level}});
}

Request release_request(
    const LockName& name, const Token& token, const std::string& level, const End& end, bool is_inner) {
  const std::string status = end.status ? std::to_string(*end.status) : "-";
  ScriptArguments arguments{.keys = name.keys(level.substr(level.starts_with('*') ? 1 : 0), token.text()),
                            .values = {token.text(), level, status, end.word}};
  if (end.is_excused || is_inner)
    arguments.values.emplace_back(end.is_excused ? "1" : "0");
  if (is_inner)
    arguments.values.emplace_back("1");
  return script_request(scripts::release, arguments);
}

Request recall_request(const LockName& name, const Token& token, const Level& level, std::optional<Fence> fence) {
  ScriptArguments arguments{.keys = name.keys(level.text(), token.text()), .values = {token.text(), level.text()}};
  if (fence)
    arguments.values.push_back(fence->text());
  return script_request(scripts::recall, arguments);
}

Request force_request(const LockName& name, std::vector<std::string> arguments) {
  return script_request(scripts::force, {.keys = name.keys(), .values = std::move(arguments)});
}

Request hold_request(const LockName& name, const Level& request, std::optional<HoldEnd> end, const Owner& by) {
  std::vector<std::string> keys = name.keys();
  keys.push_back(name.hold_mark());
  std::string how = "end";
  Milliseconds time{0};
  if (end && std::holds_alternative<WallTime>(*end)) {
    how = "until";
    time = std::get<WallTime>(*end).time_since_epoch();
  } else if (end) {
    const auto* const least = std::get_if<AtLeast>(&*end);
    how = least != nullptr ? "least" : "for";
    time = least != nullptr ? least->time : std::get<Milliseconds>(*end);
  }
  return script_request(scripts::hold,
                        {.keys = std::move(keys), .values = {request.text(), std::move(how), text(time), by.encode()}});
}

Request status_request(const LockName& name) {
  return script_request(scripts::status, {.keys = name.keys(), .values = {}});
}

Request log_request(const LockName& name, std::size_t count) {
  return script_request(scripts::log, {.keys = name.keys(), .values = {std::to_string(count)}});
}

}  // namespace rlock::lock
