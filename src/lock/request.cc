#include "lock/request.h"

#include <string_view>
#include <vector>

#include "base/escape.h"
#include "lock/scripts.h"

namespace rlock::lock {
namespace {

std::string text(Milliseconds duration) { return std::to_string(duration.count()); }

std::string_view text(Question::How how) {
  switch (how) {
    case Question::How::once:
      return "once";
    case Question::How::queue:
      return "queue";
    case Question::How::reenter:
      return "reenter";
    case Question::How::restore:
      return "restore";
  }
  return {};
}

/// Appends the options of acquire.lua.
void add_options(const Claim& claim, std::vector<std::string>& words) {
  if (claim.min_hold > Milliseconds{0})
    words.push_back("hold=" + text(claim.min_hold));
  if (claim.kept)
    words.emplace_back("kept=1");
  if (claim.polls)
    words.emplace_back("poll=1");
  if (claim.latest)
    words.emplace_back("latest=1");
  if (claim.replace)
    words.emplace_back("replace=1");
  if (claim.max_waiting)
    words.push_back("max-waiting=" + std::to_string(*claim.max_waiting));
  if (claim.waiter)
    words.push_back("waiter=" + claim.waiter->text());
  if (claim.once)
    words.push_back("once=" + percent_encode(*claim.once));
  if (claim.once_per)
    words.push_back("per=" + text(*claim.once_per));
}

}  // namespace

Request acquire_request(const LockName& name, const Claim& claim, const Question& question, Milliseconds max_lease) {
  ScriptArguments arguments{.keys = name.keys(),
                            .values = {claim.token.text(),
                                       claim.level.text(),
                                       std::to_string(claim.capacity.value),
                                       text(claim.ttl),
                                       std::string{text(question.how)},
                                       question.ticket,
                                       text(question.waited),
                                       claim.owner.encode(),
                                       text(max_lease)}};
  add_options(claim, arguments.values);
  return script_request(scripts::acquire, arguments);
}

Request settle_request(const LockName& name, const Claim& claim, Fence fence, bool is_new) {
  const std::string waiter = claim.waiter ? claim.waiter->text() : "";
  return script_request(
      scripts::settle, {.keys = name.keys(), .values = {claim.token.text(), fence.text(), waiter, is_new ? "1" : "0"}});
}

/// Sent with the script's text: the process may be gone before it could hear that a server does not know the script.
Request cancel_request(const LockName& name, const Claim& claim, const std::string& waiter) {
  Request request = script_request(scripts::cancel,
                                   {.keys = name.keys(), .values = {claim.token.text(), claim.level.text(), waiter}});
  request.command = with_source(request);
  return request;
}

}  // namespace rlock::lock
