#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "redis/reply.h"

namespace rlock::redis {

/// What is said on one connection, apart from how the bytes travel. Between questions it may listen on a channel: RESP2
/// forbids a listener to ask, so a question is put as one piece, UNSUBSCRIBE, the commands, SUBSCRIBE. Tells answers,
/// confirmations and messages apart in what comes back.
class Dialogue {
 public:
  explicit Dialogue(ReplyLimits limits) : reader_(limits) {}

  /// Where it listens from the end of the next question on; empty: nowhere.
  void listen_on(std::string channel) { wanted_ = std::move(channel); }

  /// Appends a question to what is to be sent. What was said before it is forgotten: the answer will be newer.
  void ask(const std::vector<Command>& commands, std::string& out);
  /// The same, without listening afterwards: for the first words of a connection.
  void introduce(const Command& command, std::string& out);
  /// The answers that are still due are of no interest: they are dropped when they come.
  void drop_answers();

  /// Takes bytes that came. Throws Error{unavailable} for what nobody asked for, and what ReplyReader throws.
  void feed(std::string_view bytes);

  /// Whether all has come that was to come, confirmations included.
  bool is_answered() const { return due_.empty(); }
  std::vector<Reply> take_answers() { return std::move(answers_); }
  /// Those since the last answer.
  std::vector<std::string> take_messages() { return std::move(messages_); }
  bool listens() const { return listens_; }
  /// What the last answer was, if the server refused; for one that closes the connection behind it.
  std::optional<Error> last_refusal() const;
  /// Why it may not begin or, worse, end to listen, if the server has said so: it can then ask nothing any more.
  const std::optional<Error>& refusal_to_listen() const { return refusal_; }

 private:
  enum class Due { answer, dropped, unsubscribed, subscribed };

  void sort(Reply reply);
  bool is_message(const Reply& reply) const;

  ReplyReader reader_;
  std::string wanted_;
  std::string channel_;  // the last SUBSCRIBE that was put into bytes
  std::deque<Due> due_;
  std::vector<Reply> answers_;
  std::vector<std::string> messages_;
  bool listens_ = false;
  std::optional<Error> refusal_;
};

}  // namespace rlock::redis
