#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

struct redisReader;

namespace rlock::redis {

struct Address;

/// One RESP2 reply, not to be trusted until it has been checked.
struct Reply {
  enum class Kind { nil, text, integer, error, array };

  Kind kind = Kind::nil;
  std::string text;  // of text (simple and bulk strings) and error
  long long integer = 0;
  std::vector<Reply> elements;
  std::string secret{};  // of an error: our password, which the server may repeat and no message may show

  bool is_error() const { return kind == Kind::error; }
  /// Whether it is an error with that code, the first word of error_words(), such as "NOSCRIPT".
  bool is_error(std::string_view code) const;
  /// The text of an error. When Redis 5 and 6 report a command that failed inside a script ("ERR Error running script
  /// (...): -READONLY You can't write ..."), it is what follows the dash.
  std::string_view error_words() const;
};

using Command = std::vector<std::string>;

/// Appends the command in RESP; its words may hold any bytes.
void encode(const Command& command, std::string& out);

/// How large the replies of one exchange may be together: a server, or an impostor, must not fill our memory or our
/// stack.
struct ReplyLimits {
  std::size_t bytes = 64UL * 1024;
  std::size_t elements = 1024;  // of all arrays
  std::size_t depth = 7;
};

/// The parser of hiredis, with limits.
class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  /// Starts counting against the limits from zero.
  void start_exchange();

  /// Throws Error{unavailable} for more bytes than the limit allows.
  void feed(std::string_view bytes);

  /// The next reply, if all of it was fed. Throws Error{unavailable} for bytes that are not RESP2 or exceed a limit;
  /// the reader is of no use afterwards.
  std::optional<Reply> next();

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  ReplyLimits limits_;
  ReplyLimits left_;  // of the limits, in this exchange
  std::unique_ptr<redisReader, Free> reader_;
};

/// The words of an error reply that may be shown: without the secret, cut where they repeat the command's arguments,
/// and cut if they are long.
std::string shown_words(const Reply& reply);

/// An error reply as an Error in the server's own words: no_permission if the server refuses our user, else
/// unavailable, lasting or not.
Error refusal(const Reply& reply);

/// Throws that refusal, with the server's URL, if the reply is an error.
void check_reply(const Address& from, const Reply& reply);

/// Whether these are the words of an ACL that forbids a command, key or channel, outside or inside a script.
bool lacks_permission(std::string_view words);

/// Whether a server answered AUTH by saying that it has no password.
bool wants_no_password(const Reply& reply);

}  // namespace rlock::redis
