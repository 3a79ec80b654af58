#include "redis/locator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/error.h"
#include "base/word.h"
#include "redis/reply.h"

namespace rlock::redis {
namespace {

constexpr Milliseconds answer_lifetime{100};  // spares a short run the second question
constexpr long confirmation_share = 4;        // a sentinel has a quarter of the time to confirm what is known
constexpr std::size_t most_nodes = 1000;      // that are worth knowing, as many as Redis recommends for a cluster

/// What a sentinel answered: host and port, or nil for a master that it does not know.
Endpoint read_master(Connection& sentinel, const std::string& name) {
  const Reply reply = sentinel.take_replies()[0];
  const std::string& who = sentinel.address().url;
  check_reply(sentinel.address(), reply);
  if (reply.elements.size() != 2)
    throw Error{ExitCode::unavailable, fmt::format("{} knows no master named '{}'", who, name)};
  const std::string& host = reply.elements[0].text;
  const auto port = parse_number<std::uint16_t>(reply.elements[1].text, 1);
  if (host.empty() || !port)
    throw Error{ExitCode::unavailable, who + " named no usable address"};
  return {.host = host, .port = *port};
}

}  // namespace

bool Locator::must_ask() const {
  return address_.kind == Address::Kind::sentinel && (!known_ || BootClock::now() >= believed_until_);
}

void Locator::begin(Deadline deadline) {
  deadline_ = deadline;
  sentinel_.reset();
  if (!must_ask())
    return;
  left_to_ask_ = known_ ? 1 : candidates_.size();
  complaints_.clear();
  begin_with_next_sentinel();
}

std::optional<Address> Locator::advance() {
  if (sentinel_ && !ask_sentinels())
    return std::nullopt;
  return address_.at(known_ ? *known_ : candidate());
}

/// Each sentinel gets a share of the time, so that one that hangs leaves some for the others, or for a known master.
void Locator::begin_with_next_sentinel() {
  Address address = address_.at(candidate());
  ++next_;
  address.url = "sentinel " + to_string(address.endpoints[0]);
  address.credentials = address_.sentinel.value_or(Credentials{});
  address.password_optional = true;
  address.database = 0;
  address.must_be_master = false;
  sentinel_ = std::make_unique<Connection>(address);
  const auto now = BootClock::now();
  const auto share = (deadline_ - now) / (known_ ? confirmation_share : static_cast<long>(left_to_ask_));
  --left_to_ask_;
  sentinel_->begin({{"SENTINEL", "get-master-addr-by-name", address_.master_name}}, now + share);
}

/// True when one has answered, or when none has and an earlier answer must do.
bool Locator::ask_sentinels() {
  for (;;) {
    try {
      if (!sentinel_->advance())
        return false;
      known_ = read_master(*sentinel_, address_.master_name);
      reached_ = true;
      --next_;  // next time the same sentinel is asked first
      break;
    } catch (const Error& error) {
      if (known_)
        break;
      complaints_ += (complaints_.empty() ? "" : "; ") + std::string{error.what()};
      if (left_to_ask_ == 0 || BootClock::now() >= deadline_) {
        sentinel_.reset();
        throw Error{error.code(), fmt::format("{}: no sentinel could name the master: {}", address_.url, complaints_)};
      }
      begin_with_next_sentinel();
    }
  }
  believed_until_ = BootClock::now() + answer_lifetime;
  sentinel_.reset();
  return true;
}

void Locator::forget() {
  if (address_.kind == Address::Kind::sentinel || !known_)
    ++next_;
  known_.reset();
}

void Locator::learn(std::vector<Endpoint> nodes) {
  candidates_ = address_.endpoints;
  nodes.resize(std::min(nodes.size(), most_nodes));  // a faulty or hostile server may name any number
  for (Endpoint& node : nodes) {
    if (std::find(candidates_.begin(), candidates_.end(), node) == candidates_.end())
      candidates_.push_back(std::move(node));
  }
}

}  // namespace rlock::redis
