#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace rlock::redis {

/// One RESP2 reply: hostile until looked at.
struct Reply {
  enum class Kind { nil, text, integer, error, array };

  Kind kind = Kind::nil;
  std::string text;  // of text (simple and bulk strings) and error
  long long integer = 0;
  std::vector<Reply> elements;

  bool is_error() const { return kind == Kind::error; }
  /// An error of that code, such as "NOSCRIPT": its first word, or in what Redis 5 and 6 say of a command that failed
  /// inside a script ("ERR Error running script (...): -READONLY You can't write ...") the one behind the dash.
  bool is_error(std::string_view code) const;
};

using Command = std::vector<std::string>;

/// Appends the command in RESP, in which any bytes may stand.
void encode(const Command& command, std::string& out);

/// How large the replies of one exchange may be together: a server, or who answers in its place, must not fill our
/// memory or our stack.
struct ReplyLimits {
  std::size_t bytes = 64UL * 1024;
  std::size_t elements = 1024;  // of all arrays
  std::size_t depth = 7;
};

/// hiredis' parser behind limits.
class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  /// From here on the limits count anew.
  void start_exchange();

  void feed(std::string_view bytes);

  /// Whether every byte that was fed belonged to a reply that was taken.
  bool is_empty() const;

  /// The next whole reply, if its last byte was fed. Throws Error{unavailable} for what is not RESP2 or exceeds a
  /// limit; the reader is of no use afterwards.
  std::optional<Reply> next();

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  ReplyLimits limits_;
  ReplyLimits left_;  // of them in this exchange
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace rlock::redis
