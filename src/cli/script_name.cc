#include "cli/script_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/word.h"

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 10> interpreters{
    "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "python3", "perl", "ruby"};

std::vector<std::string> command_line(pid_t process) {
  const Fd file{::open(fmt::format("/proc/{}/cmdline", process).c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer{};
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  std::vector<std::string> words;
  std::string_view rest{buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
  while (!rest.empty()) words.emplace_back(take_word(rest, '\0'));
  return words;
}

std::string base_name(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (path.starts_with('-'))                // a login shell
    path.remove_prefix(1);
  return std::string{path};
}

}  // namespace

std::string script_name(pid_t process) {
  const std::vector<std::string> words = command_line(process);
  if (words.empty())
    return "";
  const std::string program = base_name(words[0]);
  if (std::find(interpreters.begin(), interpreters.end(), program) == interpreters.end())
    return program;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-o" || words[i] == "-O") {
      ++i;  // the next word is the name of a shell option
    } else if (!words[i].starts_with('-')) {
      return base_name(words[i]);
    } else if (!words[i].starts_with("--") && words[i].find('c') != std::string::npos) {
      break;  // with -c commands follow, and no script
    }
  }
  return program;
}

}  // namespace rlock::cli
