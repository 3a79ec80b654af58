#include "redis/link.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace rlock::redis {

Link::Link(const Endpoint& endpoint, const std::optional<TlsOptions>& tls, Deadline deadline)
    : endpoint_(endpoint), tls_options_(tls), deadline_(deadline), lookup_(std::in_place, endpoint) {}

bool Link::open() {
  if (state_ == State::looking_up && !look_up())
    return false;
  if (state_ == State::connecting)
    connect();
  if (state_ == State::securing && tls_->handshake())
    state_ = State::open;
  return state_ == State::open;
}

std::string Link::what_is_late() const {
  switch (state_) {
    case State::looking_up:
      return fmt::format("cannot look up '{}' in time", endpoint_.host);
    case State::connecting:
      return "cannot connect in time";
    case State::securing:
      return "TLS: no answer in time; does the server speak TLS on this port?";
    case State::open:
      break;
  }
  return "no answer in time";
}

pollfd Link::interest(bool has_to_write) const {
  if (lookup_)
    return {lookup_->fd(), POLLIN, 0};
  if (!socket_)
    return {-1, 0, 0};
  const bool writing = tls_ ? tls_->wants_to_write() : has_to_write || state_ == State::connecting;
  return {socket_->fd(), static_cast<short>(writing ? POLLOUT : POLLIN), 0};
}

bool Link::look_up() {
  auto found = lookup_->advance();
  if (!found)
    return false;
  lookup_.reset();
  addresses_ = *std::move(found);
  state_ = State::connecting;
  return true;
}

/// An address that fails is followed by the next one.
void Link::connect() {
  while (state_ == State::connecting) {
    try {
      if (!socket_)
        try_address();
      if (BootClock::now() >= address_deadline_)
        throw Error{ExitCode::unavailable, what_is_late()};
      if (!socket_->is_connected())
        return;
      if (tls_options_)
        tls_.emplace(*tls_options_, endpoint_.host, socket_->fd());
      state_ = tls_options_ ? State::securing : State::open;
    } catch (const Error& error) {
      tls_.reset();
      socket_.reset();
      if (error.code() != ExitCode::unavailable || next_address_ >= addresses_.size())
        throw;
    }
  }
}

/// Each address but the last gets a share of the time, so that one that swallows packets leaves some to the others.
void Link::try_address() {
  const auto left = static_cast<long>(addresses_.size() - next_address_);
  const auto now = BootClock::now();
  address_deadline_ = left > 1 ? now + (deadline_ - now) / left : never;
  socket_.emplace(addresses_[next_address_++]);
}

}  // namespace rlock::redis
