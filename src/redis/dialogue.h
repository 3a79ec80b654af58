#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "redis/reply.h"

namespace rlock::redis {

/// What is said on one connection, apart from how the bytes travel. Between questions it may listen on a channel. In
/// RESP2 a subscribed connection may not send other commands, so each question is sent in one piece: UNSUBSCRIBE, the
/// commands, SUBSCRIBE. It tells answers, confirmations and messages apart in what comes back.
class Dialogue {
 public:
  explicit Dialogue(ReplyLimits limits) : reader_(limits) {}

  /// Sets the channel on which it listens after the next question; an empty one stops listening.
  void listen_on(std::string channel) { wanted_ = std::move(channel); }

  /// Appends a question to `out`. Messages received before it are forgotten, since the answer will be newer.
  void ask(const std::vector<Command>& commands, std::string& out);
  /// The same without listening afterwards, for AUTH, SELECT and ROLE on a new connection.
  void introduce(const Command& command, std::string& out);
  /// Says that nobody wants the answers that are still due: they are dropped when they come.
  void drop_answers();

  /// Takes bytes that were received. Throws Error{unavailable} for a reply that nobody asked for, and as ReplyReader
  /// does.
  void feed(std::string_view bytes);

  /// Whether every reply that was due has come, confirmations included.
  bool is_answered() const { return due_.empty(); }
  std::vector<Reply> take_answers() { return std::move(answers_); }
  /// The messages since the last answer.
  std::vector<std::string> take_messages() { return std::move(messages_); }
  bool listens() const { return listens_; }
  /// The last answer if it was a refusal: the reason why a server has closed the connection after it.
  std::optional<Error> last_refusal() const;
  /// Why the server has refused SUBSCRIBE or UNSUBSCRIBE. After a refused UNSUBSCRIBE nothing more can be asked.
  const std::optional<Error>& refusal_to_listen() const { return refusal_; }

 private:
  enum class Due { answer, dropped, unsubscribed, subscribed };

  void sort(Reply reply);
  bool is_message(const Reply& reply) const;

  ReplyReader reader_;
  std::string wanted_;
  std::string channel_;  // of the last SUBSCRIBE that was encoded
  std::deque<Due> due_;
  std::vector<Reply> answers_;
  std::vector<std::string> messages_;
  bool listens_ = false;
  std::optional<Error> refusal_;
};

}  // namespace rlock::redis
