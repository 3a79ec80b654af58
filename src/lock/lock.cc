#include "lock/lock.h"

#include <algorithm>

#include "lock/script_call.h"
#include "redis/exchange.h"

namespace rlock::lock {
namespace {

std::string text(Milliseconds duration) { return std::to_string(duration.count()); }

Milliseconds read_ms(Fields& fields) { return Milliseconds{fields.number()}; }

std::string how(const Place& place) {
  switch (place.how) {
    case Place::How::once:
      return "once";
    case Place::How::queue:
      return "queue";
    case Place::How::reenter:
      return "reenter";
  }
  return {};
}

Answer read_busy(Fields& fields) {
  Busy busy{.sleep = read_ms(fields), .ticket = fields.text(), .held = read_ms(fields), .lease = read_ms(fields),
            .cooling = read_ms(fields), .holder = {}};
  const std::string owner = fields.text();
  if (!owner.empty()) busy.holder = Owner::decode(owner);
  return busy;
}

Answer read_foreign(Fields& fields) {
  Foreign foreign{.sleep = read_ms(fields), .ticket = fields.text(), .type = fields.text(), .value = fields.text(),
                  .expires_in = {}};
  const Milliseconds ttl = read_ms(fields);
  if (ttl.count() >= 0) foreign.expires_in = ttl;
  return foreign;
}

}  // namespace

Answer Lock::acquire(Loop& loop, const Claim& claim, const Place& place, Deadline deadline) {
  const auto sent = BootClock::now();
  Fields fields =
      call_script(loop, *connection_, scripts::acquire,
                  {.keys = name_.keys(),
                   .values = {claim.token.text(), claim.level.text(), std::to_string(claim.capacity.value),
                              text(claim.ttl), how(place), place.ticket, text(claim.min_hold),
                              name_.channel(claim.level), claim.owner}},
                  deadline);
  if (fields.outcome() == "granted") {
    return Granted{.fence = {static_cast<std::uint64_t>(fields.number())},
                   .slot = static_cast<int>(fields.number()),
                   .sent = sent};
  }
  if (fields.outcome() == "busy") return read_busy(fields);
  if (fields.outcome() == "foreign") return read_foreign(fields);
  if (fields.outcome() == "mismatch") return Mismatch{{static_cast<int>(fields.number())}};
  if (fields.outcome() == "upgrade") return Upgrade{};
  if (fields.outcome() == "lost") return Lost{};
  fields.unexpected();
}

Renewal Lock::renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline) {
  const Fields fields = call_script(loop, *connection_, scripts::renew,
                                    {.keys = {name_.key()}, .values = {token.text(), text(ttl)}}, deadline);
  if (fields.outcome() == "extended") return Renewal::extended;
  if (fields.outcome() == "lost") return Renewal::lost;
  fields.unexpected();
}

ReleaseAnswer Lock::release(Loop& loop, const Token& token, const std::string& level, const std::string& status,
                            Deadline deadline) {
  Fields fields = call_script(loop, *connection_, scripts::release,
                              {.keys = name_.keys(), .values = {token.text(), level, status}}, deadline);
  if (fields.outcome() == "released") return {Release::released};
  if (fields.outcome() == "cooling") return {Release::cooling, read_ms(fields)};
  if (fields.outcome() == "kept") return {Release::kept};
  if (fields.outcome() == "lost") return {Release::lost};
  fields.unexpected();
}

ReleaseAnswer Lock::release(Loop& loop, const Claim& claim, std::optional<int> status, Deadline deadline) {
  return release(loop, claim.token, claim.level.text(), status ? std::to_string(*status) : "-", deadline);
}

ReleaseAnswer Lock::release_all(Loop& loop, const Token& token, Deadline deadline) {
  return release(loop, token, "*", "-", deadline);
}

void Lock::cancel(Loop& loop, const Token& token, Deadline deadline) {
  call_script(loop, *connection_, scripts::cancel, {.keys = name_.keys(), .values = {token.text()}}, deadline);
}

Forced Lock::force(Loop& loop, std::optional<Fence> fence, Deadline deadline) {
  Fields fields = call_script(loop, *connection_, scripts::force,
                              {.keys = name_.keys(), .values = {fence ? std::to_string(fence->value) : ""}}, deadline);
  if (fields.outcome() == "foreign") return ForeignKey{.type = fields.text(), .value = fields.text()};
  std::vector<Owner> evicted;
  while (!fields.at_end()) evicted.push_back(Owner::decode(fields.text()));
  return evicted;
}

bool Lock::was_released(Loop& loop, const Token& token, Deadline deadline) {
  const auto replies = redis::call(loop, *connection_, {{"HGET", name_.meta_key(), "released"}}, deadline);
  check_reply(connection_->address(), replies[0]);
  return replies[0].text.find(token.text() + ":") != std::string::npos;
}

}  // namespace rlock::lock
