#include "redis/dialogue.h"

#include <algorithm>
#include <utility>

#include "redis/refusal.h"

namespace rlock::redis {

void Dialogue::ask(const std::vector<Command>& commands, std::string& out) {
  answers_.clear();
  messages_.clear();
  reader_.start_exchange();
  if (!channel_.empty()) {
    encode({"UNSUBSCRIBE", std::exchange(channel_, {})}, out);
    due_.push_back(Due::unsubscribed);
  }
  for (const Command& command : commands) encode(command, out);
  due_.insert(due_.end(), commands.size(), Due::answer);
  if (!wanted_.empty()) {
    channel_ = wanted_;
    encode({"SUBSCRIBE", channel_}, out);
    due_.push_back(Due::subscribed);
  }
}

void Dialogue::introduce(const Command& command, std::string& out) {
  answers_.clear();
  reader_.start_exchange();
  encode(command, out);
  due_.push_back(Due::answer);
}

void Dialogue::drop_answers() {
  answers_.clear();
  std::replace(due_.begin(), due_.end(), Due::answer, Due::dropped);
}

std::optional<Error> Dialogue::last_refusal() const {
  return !answers_.empty() && answers_.back().is_error() ? std::optional{refusal(answers_.back())} : std::nullopt;
}

void Dialogue::feed(std::string_view bytes) {
  try {
    reader_.feed(bytes);
    while (auto reply = reader_.next()) sort(*std::move(reply));
  } catch (const Error& error) {
    if (!listens_)
      throw;
    throw Error{error.code(), error.what()};  // anybody may have sent that message, so trying again may help
  }
}

void Dialogue::sort(Reply reply) {
  if (listens_ && is_message(reply)) {
    reader_.start_exchange();  // the limits apply to each message, not to all of them together
    if (due_.empty())
      messages_.push_back(std::move(reply.elements[2].text));
    return;
  }
  if (due_.empty())
    throw Error{ExitCode::unavailable, "sent a reply that nobody asked for"};
  const Due due = due_.front();
  due_.pop_front();
  switch (due) {
    case Due::answer:
      answers_.push_back(std::move(reply));
      break;
    case Due::dropped:
      break;
    case Due::unsubscribed:
    case Due::subscribed:
      if (reply.is_error())
        refusal_ = refusal(reply);
      else
        listens_ = due == Due::subscribed;
      break;
  }
}

bool Dialogue::is_message(const Reply& reply) const {
  return reply.elements.size() == 3 && reply.elements[0].text == "message";
}

}  // namespace rlock::redis
