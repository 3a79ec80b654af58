#include "redis/locator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace rlock::redis {
namespace {

/// What a sentinel answers: host and port, or nil for a master that it does not know.
Endpoint read_master(const Reply& reply, const std::string& name) {
  if (reply.is_error())
    throw Error{ExitCode::unavailable, reply.text};
  if (reply.elements.size() != 2) {
    throw Error{ExitCode::unavailable, fmt::format("knows no master named '{}'", name)};
  }
  const std::string& host = reply.elements[0].text;
  const bool v6 = host.find(':') != std::string::npos;
  const auto endpoint =
      parse_endpoint(fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", reply.elements[1].text), 0);
  if (!endpoint)
    throw Error{ExitCode::unavailable, "named no usable address"};
  return *endpoint;
}

}  // namespace

void Locator::begin(Deadline deadline) {
  deadline_ = deadline;
  if (known_ || address_.kind != Address::Kind::sentinel)
    return;
  left_to_ask_ = address_.endpoints.size();
  complaints_.clear();
  begin_with_next_sentinel();
}

std::optional<Address> Locator::advance() {
  if (!known_ && address_.kind == Address::Kind::sentinel) {
    known_ = ask_sentinels();
    if (!known_)
      return std::nullopt;
  }
  return address_.at(known_ ? *known_ : address_.endpoints[next_ % address_.endpoints.size()]);
}

/// Each gets its share of the time, so that one which hangs leaves some to the others.
void Locator::begin_with_next_sentinel() {
  Address address = address_.at(address_.endpoints[next_++ % address_.endpoints.size()]);
  address.credentials = address_.sentinel.value_or(Credentials{});
  address.database = 0;
  address.must_be_master = false;
  sentinel_ = std::make_unique<Connection>(address);
  const auto now = BootClock::now();
  const auto share = (deadline_ - now) / static_cast<long>(left_to_ask_--);
  sentinel_->begin({{"SENTINEL", "get-master-addr-by-name", address_.master_name}}, now + share);
}

std::optional<Endpoint> Locator::ask_sentinels() {
  for (;;) {
    try {
      if (!sentinel_->advance())
        return std::nullopt;
      const Endpoint master = read_master(sentinel_->take_replies()[0], address_.master_name);
      --next_;  // the same sentinel first, next time
      sentinel_.reset();
      return master;
    } catch (const Error& error) {
      complaints_ += (complaints_.empty() ? "" : "; ") + std::string{error.what()};
      if (left_to_ask_ == 0 || BootClock::now() >= deadline_) {
        throw Error{error.code(), fmt::format("{}: no sentinel could name the master: {}", address_.url, complaints_)};
      }
      begin_with_next_sentinel();
    }
  }
}

void Locator::forget() {
  if (address_.kind == Address::Kind::cluster && !known_)
    ++next_;
  known_.reset();
}

}  // namespace rlock::redis
