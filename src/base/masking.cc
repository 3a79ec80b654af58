#include "base/masking.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/word.h"

namespace rlock {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(
      parts.begin(), parts.end(), [text](auto part) { return text.find(part) != std::string_view::npos; });
}

/// Whether the value of an option or variable of this name is a secret. The value of --password-file is not.
bool names_secret(std::string_view text) {
  std::string name = lower(text);
  name.erase(0, name.find_first_not_of('-'));
  if (name.starts_with("no-") || name.ends_with("file") || name == "pwd" || name == "oldpwd")
    return false;
  return has_any(name, {"pass", "token", "secret", "credential", "pwd"});
}

/// Before "=" names such as --api-key and --auth count too. Without it, the X of `--key X` is no secret in most
/// programs.
bool assigns_secret(std::string_view text) {
  const std::string name = lower(text);
  return names_secret(name) || name.ends_with("key") || name.ends_with("auth");
}

/// Reads the words of a command from left to right, since some words say what the next one is.
class CommandMask {
 public:
  std::string mask_argument(const std::string& argument) {
    const bool is_script = std::exchange(script_follows_, false);
    const bool is_whole =
        argument.find_first_of(blanks) == std::string::npos || (begins_with_secret(argument) && !is_script);
    if (secret_follows_ || is_whole)
      return mask_word(argument);
    return mask_words(argument);
  }

 private:
  static constexpr std::string_view blanks = " \t\n;|&()";
  static constexpr std::string_view hidden = "***";

  static bool begins_with_secret(std::string_view argument) {
    const auto equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    return equals != std::string_view::npos && std::all_of(name.begin(), name.end(), is_part_of_name) &&
           assigns_secret(name);
  }

  /// The words of a shell script, or of a command for another machine. A quoted blank does not end a word.
  std::string mask_words(std::string_view script) {
    std::string out;
    while (!script.empty()) {
      char quote = '\0';
      std::size_t end = 0;
      for (; end < script.size() && (quote != '\0' || blanks.find(script[end]) == std::string_view::npos); ++end) {
        if (script[end] == quote) {
          quote = '\0';
        } else if (quote == '\0' && (script[end] == '"' || script[end] == '\'')) {
          quote = script[end];
        }
      }
      if (end > 0)
        out += mask_word(std::string{script.substr(0, end)});
      out += script.substr(end, 1);
      script.remove_prefix(std::min(end + 1, script.size()));
    }
    return out;
  }

  std::string mask_word(std::string word) {
    const bool is_option = word.starts_with('-');
    if (std::exchange(secret_follows_, false) && !is_option)
      return std::string{hidden};
    if (std::exchange(user_follows_, false))
      hide_after_colon(word);
    if (is_option) {
      look_at_option(word);
    } else {
      note_program(word);
    }
    hide_assigned(word);
    hide_user_info(word);
    return word;
  }

  void look_at_option(std::string& word) {
    const bool is_long = word.starts_with("--");
    script_follows_ = !is_long && word.ends_with('c');
    user_follows_ = word == "-u" || word == "--user" || word == "--proxy-user";
    secret_follows_ = word.find('=') == std::string::npos && names_secret(word);
    if (!is_long && word.size() > 1 && word[1] == letter_) {
      secret_follows_ = word.size() == 2 && !attached_;
      if (word.size() > 2 && !secret_follows_)
        word.replace(2, std::string::npos, hidden);
    }
  }

  /// The programs whose one-letter option is a password: attached to the letter, or (sshpass, redis-cli) also after it.
  void note_program(std::string_view word) {
    word.remove_prefix(word.rfind('/') + 1);
    if (word.starts_with("mysql") || word.starts_with("mariadb")) {
      letter_ = 'p';
      attached_ = true;
    } else if (word == "sshpass") {
      letter_ = 'p';
      attached_ = false;
    } else if (word == "redis-cli" || word == "valkey-cli") {
      letter_ = 'a';
      attached_ = false;
    }
  }

  /// NAME=value, --name=value, and "?name=value&" in a URL.
  static void hide_assigned(std::string& word) {
    const bool is_url = word.find("://") != std::string::npos;
    for (auto equals = word.find('='); equals != std::string::npos; equals = word.find('=', equals + 1)) {
      auto begin = equals;
      while (begin > 0 && is_part_of_name(word[begin - 1])) --begin;
      if (!assigns_secret(std::string_view{word}.substr(begin, equals - begin)))
        continue;
      const auto end = is_url ? std::min(word.find('&', equals), word.size()) : word.size();
      word.replace(equals + 1, end - equals - 1, hidden);
    }
  }

  /// "//user:X@host", and "user:X@host". The digest of an image, "name:tag@sha256:...", is no password.
  static void hide_user_info(std::string& word) {
    const auto slashes = word.find("://");
    const auto start = slashes == std::string::npos ? 0 : slashes + 3;
    const auto at = word.rfind('@');
    const auto colon = word.find(':', start);
    if (at == std::string::npos || colon == std::string::npos || colon > at || word.compare(at, 8, "@sha256:") == 0)
      return;
    if (slashes != std::string::npos || word.find('/') > colon)
      word.replace(colon + 1, at - colon - 1, hidden);
  }

  /// `-u user:X` of curl, but neither `-u 1000:1000` nor `rsync -u user@host:dir`.
  static void hide_after_colon(std::string& word) {
    const auto colon = word.find(':');
    if (colon < word.find('@') && word.find_first_not_of("0123456789:") != std::string::npos)
      word.replace(colon + 1, std::string::npos, hidden);
  }

  bool secret_follows_ = false;
  bool user_follows_ = false;
  bool script_follows_ = false;
  char letter_ = '\0';  // of the option whose value is a password; 0 if there is none
  bool attached_ = false;
};

}  // namespace

std::string mask_arguments(std::span<const std::string> arguments) {
  CommandMask mask;
  std::string out;
  for (const std::string& argument : arguments) {
    if (&argument != arguments.data())
      out += ' ';
    out += mask.mask_argument(argument);
  }
  return out;
}

}  // namespace rlock
