#include "lock/answer.h"

namespace rlock::lock {
namespace {

Milliseconds read_ms(Fields& fields) { return Milliseconds{fields.number()}; }

Answer read_busy(Fields& fields) {
  Busy busy{.sleep = read_ms(fields),
            .ticket = fields.text(),
            .held = read_ms(fields),
            .lease = read_ms(fields),
            .cooling = read_ms(fields),
            .holder = {}};
  const std::string owner = fields.text();
  if (!owner.empty())
    busy.holder = Owner::decode(owner);
  return busy;
}

Answer read_foreign(Fields& fields) {
  Foreign foreign{.sleep = read_ms(fields),
                  .ticket = fields.text(),
                  .type = fields.text(),
                  .value = fields.text(),
                  .expires_in = {}};
  const Milliseconds ttl = read_ms(fields);
  if (ttl.count() >= 0)
    foreign.expires_in = ttl;
  return foreign;
}

Answer read_granted(Fields& fields, BootClock::time_point sent) {
  return Granted{
      .fence = {static_cast<std::uint64_t>(fields.number())}, .slot = static_cast<int>(fields.number()), .sent = sent};
}

}  // namespace

Answer read_answer(Fields fields, BootClock::time_point sent) {
  if (fields.outcome() == "granted")
    return read_granted(fields, sent);
  if (fields.outcome() == "busy")
    return read_busy(fields);
  if (fields.outcome() == "foreign")
    return read_foreign(fields);
  if (fields.outcome() == "mismatch")
    return Mismatch{{static_cast<int>(fields.number())}};
  if (fields.outcome() == "upgrade")
    return Upgrade{};
  if (fields.outcome() == "lost")
    return Lost{};
  fields.unexpected();
}

}  // namespace rlock::lock
