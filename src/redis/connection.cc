#include "redis/connection.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "redis/refusal.h"

namespace rlock::redis {

Connection::Connection(Address address, ReplyLimits limits) : address_(std::move(address)), limits_(limits) {}

void Connection::close() {
  state_ = State::closed;
  lookup_.reset();
  tls_.reset();
  socket_.reset();
  reader_.reset();
  introductions_.clear();
  outgoing_.clear();
}

void Connection::begin(const std::vector<Command>& commands, Deadline deadline) {
  if (!is_idle())
    close();
  start(commands, deadline);
}

void Connection::follow_up(const std::vector<Command>& commands, Deadline deadline) {
  if (!is_idle())
    throw Error{ExitCode::unavailable, address_.url + ": the connection was lost"};
  start(commands, deadline);
}

/// Whether the next exchange may use the connection: all was answered, and nothing has come since, not even its end.
bool Connection::is_idle() const {
  return state_ == State::ready && replies_.size() >= expected_ && reader_->is_empty() && !socket_->is_readable();
}

void Connection::start(const std::vector<Command>& commands, Deadline deadline) {
  request_.clear();
  for (const Command& command : commands) encode(command, request_);
  expected_ = commands.size();
  replies_.clear();
  deadline_ = deadline;
  if (state_ != State::ready)
    return;
  outgoing_ = request_;
  reader_->start_exchange();
}

void Connection::listen() {
  expected_ = 1;
  replies_.clear();
  deadline_ = never;
  reader_->start_exchange();
}

std::vector<Reply> Connection::take_replies() {
  expected_ = 0;
  return std::exchange(replies_, {});
}

pollfd Connection::interest() const {
  if (lookup_)
    return {lookup_->fd(), POLLIN, 0};
  if (!socket_)
    return {-1, 0, 0};
  bool writing = state_ == State::connecting || !outgoing_.empty();
  if (tls_)
    writing = tls_->wants_to_write();
  return {socket_->fd(), static_cast<short>(writing ? POLLOUT : POLLIN), 0};
}

bool Connection::advance() {
  try {
    if (BootClock::now() >= deadline_)
      throw Error{ExitCode::unavailable, what_is_late()};
    return step();
  } catch (const Error& error) {
    close();
    throw error.about(address_.url);
  }
}

std::string Connection::what_is_late() const {
  switch (state_) {
    case State::looking_up:
      return fmt::format("cannot look up '{}' in time", address_.endpoints[0].host);
    case State::connecting:
      return "cannot connect in time";
    case State::securing:
      return "TLS: no answer in time; does the server speak TLS on this port?";
    case State::introducing:
      return "no answer in time to " + introductions_.front().front();
    case State::closed:
    case State::ready:
      break;
  }
  return "no answer in time";
}

bool Connection::step() {
  if (state_ == State::closed) {
    lookup_.emplace(address_.endpoints[0]);
    state_ = State::looking_up;
  }
  if (state_ == State::looking_up && !look_up())
    return false;
  if (state_ == State::connecting)
    connect();
  if (state_ == State::securing && tls_->handshake())
    start_talking();
  if (state_ == State::introducing)
    introduce();
  return state_ == State::ready && exchange();
}

bool Connection::look_up() {
  auto found = lookup_->advance();
  if (!found)
    return false;
  lookup_.reset();
  addresses_ = *std::move(found);
  next_address_ = 0;
  state_ = State::connecting;
  return true;
}

/// Goes on to the next address while one fails.
void Connection::connect() {
  while (state_ == State::connecting) {
    try {
      if (!socket_)
        try_address();
      if (BootClock::now() >= address_deadline_)
        throw Error{ExitCode::unavailable, what_is_late()};
      if (!socket_->is_connected())
        return;
      if (address_.tls) {
        tls_.emplace(*address_.tls, address_.endpoints[0].host, socket_->fd());
        state_ = State::securing;
      } else {
        start_talking();
      }
    } catch (const Error& error) {
      tls_.reset();
      socket_.reset();
      if (error.code() != ExitCode::unavailable || next_address_ >= addresses_.size())
        throw;
    }
  }
}

/// Each address but the last gets its share of the time, so that one that swallows packets leaves some to the others.
void Connection::try_address() {
  const auto left = static_cast<long>(addresses_.size() - next_address_);
  const auto now = BootClock::now();
  address_deadline_ = left > 1 ? now + (deadline_ - now) / left : deadline_;
  reader_.emplace(limits_);
  socket_.emplace(addresses_[next_address_++]);
}

/// The first words of a new connection.
void Connection::start_talking() {
  introductions_ = introductions();
  outgoing_.clear();
  if (introductions_.empty()) {
    outgoing_ = request_;
    state_ = State::ready;
  } else {
    encode(introductions_.front(), outgoing_);
    state_ = State::introducing;
  }
}

std::vector<Command> Connection::introductions() const {
  std::vector<Command> commands;
  const std::string& user = address_.credentials.user;
  const auto password = address_.credentials.current_password();
  if (!user.empty()) {
    commands.push_back({"AUTH", user, password.value_or("")});  // not as the default user, who may do other things
  } else if (password) {
    commands.push_back({"AUTH", *password});
  }
  if (address_.database != 0)
    commands.push_back({"SELECT", std::to_string(address_.database)});
  if (address_.must_be_master)
    commands.push_back({"ROLE"});
  return commands;
}

/// Nothing of the request is sent before the server has accepted who we are and which database we mean.
void Connection::introduce() {
  while (state_ == State::introducing) {
    if (!flush())
      return;
    const auto reply = read_reply();
    if (!reply)
      return;
    check_introduction(*reply);
    introductions_.erase(introductions_.begin());
    if (introductions_.empty()) {
      outgoing_ = request_;
      state_ = State::ready;
    } else {
      encode(introductions_.front(), outgoing_);
    }
  }
}

void Connection::check_introduction(const Reply& reply) const {
  const std::string& command = introductions_.front().front();
  const bool is_auth = command == "AUTH";
  if (is_auth && address_.password_optional && wants_no_password(reply))
    return;
  if (reply.is_error()) {
    const Error why = refusal(reply);
    throw Error{is_auth && !why.may_pass() ? ExitCode::no_permission : why.code(),
                fmt::format("{} refused: {}", command, reply.text),
                !why.may_pass()};
  }
  if (command != "ROLE") {
    if (reply.kind != Reply::Kind::text || reply.text != "OK")
      throw Error{ExitCode::unavailable, command + " was answered with something else", true};
  } else if (reply.elements.empty() || reply.elements[0].text != "master") {
    const std::string role = reply.elements.empty() ? "of no known role" : reply.elements[0].text;
    throw Error{ExitCode::unavailable, "is not the master but " + role};
  }
}

bool Connection::exchange() {
  if (!flush())
    return false;
  asked_ = true;
  while (replies_.size() < expected_) {
    auto reply = read_reply();
    if (!reply)
      return false;
    replies_.push_back(*std::move(reply));
  }
  return true;
}

/// True when every byte has left.
bool Connection::flush() {
  while (!outgoing_.empty()) {
    const std::size_t count = tls_ ? tls_->write(outgoing_) : socket_->write(outgoing_);
    if (count == 0)
      return false;
    outgoing_.erase(0, count);
  }
  return true;
}

std::optional<Reply> Connection::read_reply() {
  std::array<char, 16384> buffer;
  auto reply = reader_->next();
  while (!reply) {
    const std::size_t count = tls_ ? tls_->read(buffer) : socket_->read(buffer);
    if (count == 0)
      return std::nullopt;
    reader_->feed({buffer.data(), count});
    reply = reader_->next();
  }
  reached_ = true;
  return reply;
}

}  // namespace rlock::redis
