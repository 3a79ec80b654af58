#include "redis/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rlock::redis {
namespace {

bool is_message(const Reply& reply) { return reply.elements.size() == 3 && reply.elements[0].text == "message"; }

}  // namespace

Error connection_lost(const Address& address) {
  return Error{ExitCode::unavailable, address.url + ": the connection was lost"};
}

void Connection::close() {
  state_ = State::closed;
  link_.reset();
  introductions_.clear();
  outgoing_.clear();
  is_asking_ = false;
  opening_deadline_ = never;
}

void Connection::begin(std::vector<Command> commands, Deadline deadline) {
  if (state_ == State::ready)
    is_asking_ ? close() : check_for_news();
  else if (BootClock::now() >= limit())
    close();
  start(std::move(commands), deadline);
}

void Connection::follow_up(std::vector<Command> commands, Deadline deadline) {
  check_for_news();
  if (state_ != State::ready)
    throw connection_lost(address_);
  start(std::move(commands), deadline);
}

/// Called before the connection is used again: it may have ended, or hold answers that nobody waits for any more. It is
/// closed if it still owes us such an answer after that answer's deadline: whoever asks more often than that would
/// never notice that the connection is dead.
void Connection::check_for_news() {
  if (state_ != State::ready)
    return;
  if (link_->is_readable())
    hear();
  if (state_ == State::ready && !talk_->is_answered() && BootClock::now() >= talk_->due.front().until)
    close();
}

void Connection::start(std::vector<Command> commands, Deadline deadline) {
  is_asking_ = true;
  deadline_ = deadline;
  if (state_ == State::ready) {
    ask(commands);
  } else {
    request_ = std::move(commands);
  }
}

void Connection::abandon() {
  if (!is_asking_)
    return;
  is_asking_ = false;
  request_.clear();
  if (state_ != State::ready)
    return;
  talk_->answers.clear();
  for (Due& due : talk_->due) {
    if (due.kind == Due::Kind::answer)
      due.kind = Due::Kind::dropped;
  }
  if (!outgoing_.empty())
    close();  // a part may have left
}

Deadline Connection::limit() const { return is_asking_ ? std::min(deadline_, opening_deadline_) : opening_deadline_; }

Deadline Connection::deadline() const {
  return state_ == State::opening ? std::min(limit(), link_->deadline()) : limit();
}

bool Connection::advance() {
  try {
    return step();
  } catch (const Error& error) {
    close();
    throw error.about(address_.url);
  }
}

void Connection::hear() {
  if (state_ == State::closed)
    return;
  try {
    step();
  } catch (const Error&) {
    close();
  }
}

std::vector<std::string> Connection::take_messages() {
  return talk_ ? std::move(talk_->messages) : std::vector<std::string>{};
}

std::optional<Error> Connection::refusal_to_listen() const {
  return talk_ && talk_->refusal ? std::optional{talk_->refusal->about(address_.url)} : std::nullopt;
}

std::string Connection::what_is_late() const {
  if (state_ == State::opening)
    return link_->what_is_late();
  return state_ == State::introducing ? "no answer in time to " + introductions_.front().front() : "no answer in time";
}

/// True when an exchange has ended.
bool Connection::step() {
  if (BootClock::now() >= limit())
    throw Error{ExitCode::unavailable, what_is_late()};
  if (state_ == State::closed)
    open();
  if (state_ == State::opening && link_->open()) {
    introductions_ = introductions();
    state_ = State::introducing;
    say_next();
  }
  if (state_ == State::introducing)
    introduce();
  return state_ == State::ready && exchange();
}

void Connection::open() {
  opening_deadline_ = deadline_;
  link_.emplace(address_.endpoints[0], address_.tls, deadline_);
  talk_.emplace(limits_);
  state_ = State::opening;
}

void Connection::say_next() {
  if (!introductions_.empty()) {
    talk_->answers.clear();
    talk_->reader.start_exchange();
    say({introductions_.front()}, Due::Kind::answer);
    return;
  }
  state_ = State::ready;
  opening_deadline_ = never;
  if (is_asking_)
    ask(std::exchange(request_, {}));
}

/// AUTH, SELECT and ROLE as needed. Nothing of the request is sent before the server has accepted them: who we are,
/// which database we mean, and that it is a master.
std::vector<Command> Connection::introductions() {
  std::vector<Command> commands;
  const std::string& user = address_.credentials.user;
  const auto password = address_.credentials.current_password();
  password_ = password.value_or("");
  if (!user.empty()) {
    commands.push_back({"AUTH", user, password.value_or("")});  // else we would be the default user
  } else if (password) {
    commands.push_back({"AUTH", *password});
  }
  if (address_.database != 0)
    commands.push_back({"SELECT", std::to_string(address_.database)});
  if (address_.must_be_master)
    commands.push_back({"ROLE"});
  return commands;
}

void Connection::introduce() {
  while (state_ == State::introducing) {
    if (!flush())
      return;
    read();
    if (!talk_->is_answered())
      return;
    check_introduction(talk_->answers[0]);
    introductions_.erase(introductions_.begin());
    say_next();
  }
}

/// Says where to correct a password that was refused. A user without a password is not shown, as in the URL.
std::string Connection::password_origin() const {
  const Credentials& who = address_.credentials;
  if (!who.password && who.password_file.empty())
    return "; a user was given, but no password: use --password-file, or RLOCK_PASSWORD; "
           "a URL with a password alone is redis://:PASSWORD@HOST";
  const std::string of_user = who.user.empty() ? "" : fmt::format(" of user {}", who.user);
  return fmt::format("; the password{} is from {}", of_user, who.origin);
}

void Connection::refuse_introduction(const Reply& reply) const {
  const std::string& command = introductions_.front().front();
  const bool is_auth = command == "AUTH";
  const Error why = refusal(reply);
  if (!is_auth && reply.is_error("NOAUTH"))
    throw Error{why};                                  // it says what to do
  const bool is_refused = is_auth && !why.may_pass();  // and not merely a server that takes nobody for now
  throw Error{is_refused ? ExitCode::no_permission : why.code(),
              fmt::format("{} refused: {}{}", command, shown_words(reply), is_refused ? password_origin() : ""),
              !why.may_pass()};
}

void Connection::check_introduction(const Reply& reply) const {
  const std::string& command = introductions_.front().front();
  if (command == "AUTH" && address_.password_optional && wants_no_password(reply))
    return;
  if (reply.is_error())
    refuse_introduction(reply);
  if (command != "ROLE") {
    if (reply.kind != Reply::Kind::text || reply.text != "OK")
      throw Error{ExitCode::unavailable, "unexpected answer to " + command, true};
  } else if (reply.elements.empty() || reply.elements[0].text != "master") {
    const std::string role = reply.elements.empty() ? "" : reply.elements[0].text;
    const bool is_known = role == "slave" || role == "sentinel";  // else it may be anything, even our password
    throw Error{ExitCode::unavailable, "is not the master; its role is " + (is_known ? role : "unknown")};
  }
}

void Connection::say(const std::vector<Command>& commands, Due::Kind due) {
  for (const Command& command : commands) encode(command, outgoing_);
  talk_->due.insert(talk_->due.end(), commands.size(), Due{.kind = due, .until = deadline_});
}

void Connection::ask(const std::vector<Command>& commands) {
  talk_->answers.clear();
  talk_->messages.clear();
  talk_->reader.start_exchange();
  if (!talk_->channel.empty())
    say({{"UNSUBSCRIBE", talk_->channel}}, Due::Kind::unsubscribed);
  say(commands, Due::Kind::answer);
  talk_->channel = channel_;
  if (!channel_.empty())
    say({{"SUBSCRIBE", channel_}}, Due::Kind::subscribed);
}

bool Connection::exchange() {
  if (!outgoing_.empty()) {
    asked_ = flush() || asked_;
    return false;  // no answer can be there yet
  }
  read();
  reached_ = reached_ || (asked_ && talk_->is_answered());
  return talk_->is_answered() && std::exchange(is_asking_, false);
}

/// True when every byte has left.
bool Connection::flush() {
  while (!outgoing_.empty()) {
    const std::size_t count = link_->write(outgoing_);
    if (count == 0)
      return false;
    outgoing_.erase(0, count);
  }
  return true;
}

/// A server that closes the connection after a refusal (of a long command before AUTH, for example) has said why. One
/// that wants TLS says nothing at all.
std::size_t Connection::read_from_link(std::span<char> into) {
  try {
    return link_->read(into);
  } catch (const Error& error) {
    if (!talk_->answers.empty() && talk_->answers.back().is_error())
      throw refusal(talk_->answers.back());
    const bool may_want_tls = !is_known_ && !address_.tls && !address_.endpoints[0].is_unix();
    if (may_want_tls && error.what() == Link::closed)
      throw Error{error.code(), fmt::format("{} at once: is it rediss://?", Link::closed)};
    throw;
  }
}

/// Reads what has come, at most 64 KB at a time, so that a flood of messages cannot keep the caller from the clock.
void Connection::read() {
  std::array<char, 16384> buffer;
  for (int part = 0; part < 4; ++part) {
    const std::size_t count = read_from_link(buffer);
    if (count == 0)
      return;
    feed({buffer.data(), count});
    if (talk_->is_answered())
      return;
  }
}

void Connection::feed(std::string_view bytes) {
  is_known_ = true;
  try {
    talk_->reader.feed(bytes);
    while (auto reply = talk_->reader.next()) dispatch(*std::move(reply));
  } catch (const Error& error) {
    if (!talk_->listens)
      throw;
    throw Error{error.code(), error.what()};  // anybody may have sent that message, so trying again may help
  }
}

void Connection::dispatch(Reply reply) {
  if (reply.is_error())
    reply.secret = password_;
  if (talk_->listens && is_message(reply)) {
    talk_->reader.start_exchange();  // the limits apply to each message, not to all of them together
    if (talk_->due.empty())
      talk_->messages.push_back(std::move(reply.elements[2].text));
    return;
  }
  if (talk_->due.empty())
    throw Error{ExitCode::unavailable, "sent a reply that nobody asked for"};
  const Due::Kind due = talk_->due.front().kind;
  talk_->due.pop_front();
  switch (due) {
    case Due::Kind::answer:
      talk_->answers.push_back(std::move(reply));
      break;
    case Due::Kind::dropped:
      break;
    case Due::Kind::unsubscribed:
    case Due::Kind::subscribed:
      if (reply.is_error())
        talk_->refusal = refusal(reply);
      else
        talk_->listens = due == Due::Kind::subscribed;
      break;
  }
}

}  // namespace rlock::redis
