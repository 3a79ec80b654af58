// Any text as a configuration file: settings, or an Error that names the file and shows no password.
#include "cli/config.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/word.h"

namespace {

using namespace rlock;

constexpr std::string_view password = "Pa55w0rd";

void check(const std::string& text, cli::Subcommand reader) {
  try {
    const auto layers = cli::parse_config(text, "f", reader);
    if (layers.size() != 2)
      __builtin_trap();
    // Every value was tried when it was read, so that nothing can fail now.
    (void)cli::merge(layers);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (error.code() != ExitCode::config || !message.starts_with("f:") ||
        message.find(password) != std::string_view::npos)
      __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  constexpr cli::Subcommand readers[] = {cli::Subcommand::run,
                                         cli::Subcommand::acquire,
                                         cli::Subcommand::renew,
                                         cli::Subcommand::release,
                                         cli::Subcommand::hold,
                                         cli::Subcommand::status,
                                         cli::Subcommand::log,
                                         cli::Subcommand::check};
  const cli::Subcommand reader = readers[data[0] % std::size(readers)];
  const std::string text{reinterpret_cast<const char*>(data) + 1, size - 1};
  if (text.find(password) != std::string::npos)
    return 0;  // no secret
  check(text, reader);
  // A line that was meant to be `redis = URL`, whatever stands before the URL.
  const std::string line = text.substr(0, text.find('\n'));
  if (lower(line).find("unix:") != std::string::npos)
    return 0;  // has no password, but a path in which anything may stand
  check(line + "redis://user:" + std::string{password} + "@host", reader);
  return 0;
}
