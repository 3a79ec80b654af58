#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

/// Text from Redis, the environment or another user, made safe for a terminal: control characters, invalid UTF-8,
/// bidirectional and invisible characters become \n, \xNN or \u{NNNN}. The result is valid UTF-8 on one line.
std::string printable(std::string_view text);

/// A JSON string (RFC 8259) with its quotes. Invalid UTF-8 becomes U+FFFD; what printable() escapes is \u-escaped.
std::string json_string(std::string_view text);

/// One word for a POSIX shell, safe for `eval`.
std::string shell_word(std::string_view text);

/// One word to be pasted into a shell: as shell_word(), but what printable() escapes is escaped as bash, zsh and ksh
/// understand it, $'a\011b'.
std::string visible_shell_word(std::string_view text);

/// A glob pattern for Redis (KEYS, SCAN, ACL) that matches exactly this text.
std::string glob_escape(std::string_view text);

/// RFC 3986: all but letters, digits and -._~ as %NN; for records that use spaces, ',' and '=' as separators.
std::string percent_encode(std::string_view text);

/// Returns nothing for a '%' that is not followed by two hexadecimal digits, and for %00.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace rlock
