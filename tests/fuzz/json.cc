// What a hostile Redis answers to `status` and `log`: refused, or shown, as one line of valid JSON, as metrics and as a
// table of printable characters.
#include "cli/json.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/escape.h"
#include "cli/prometheus.h"
#include "cli/table.h"
#include "printable.h"
#include "reply_of.h"
#include "strict_json.h"

namespace {

using namespace rlock;

const lock::LockName name{"", "k"};
const redis::Address server = redis::parse_address("redis://h");
constexpr cli::Screen terminal{.is_terminal = true, .columns = 80, .rows = 24, .colour = false};

void check_json(std::string_view line) {
  if (!line.ends_with('\n') || !fuzz::is_printable_line(line.substr(0, line.size() - 1)) || !fuzz::is_json(line))
    __builtin_trap();
}

void check_table(std::string_view table) {
  while (!table.empty()) {
    const auto end = table.find('\n');
    if (end == std::string_view::npos || !fuzz::is_printable_line(table.substr(0, end)))
      __builtin_trap();
    table.remove_prefix(end + 1);
  }
}

void show_facts(std::string_view bytes) {
  const observe::LockFacts facts = observe::read_facts(name, {server, fuzz::reply_of(bytes)});
  check_json(cli::format_json({facts, facts}));
  check_table(cli::format_prometheus({facts}));
  check_table(cli::format_table({facts}, {}));
  check_table(cli::format_table({facts}, terminal));
}

void show_history(std::string_view bytes) {
  const observe::History history = observe::read_history(name, {server, fuzz::reply_of(bytes)});
  const observe::History merged = observe::merge_histories({history, history}, observe::kept_runs);
  check_json(cli::format_json(merged.runs));
  check_table(cli::format_table(merged.runs, terminal));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  check_json("[" + json_string(bytes) + "]\n");
  for (const auto show : {show_facts, show_history}) {
    try {
      show(bytes);
    } catch (const Error&) {
      // Refused, as it should be.
    }
  }
  return 0;
}
