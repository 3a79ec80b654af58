#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/loop.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "observe/fitness.h"

namespace rlock::cli {
namespace {

using observe::Finding;

/// The examination of one server. A server that cannot be examined has one finding, and the failure.
struct Examined {
  std::string url;
  observe::Fitness fitness;
  std::optional<Error> failure;
};

Examined examine_one(redis::Server& server, const observe::ExamineOptions& how) {
  try {
    return {.url = server.address().url, .fitness = observe::examine(server, how), .failure = {}};
  } catch (const Error& error) {
    const Finding finding{Finding::Grade::fail, "reachable", error.what()};
    return {.url = server.address().url,
            .fitness = {.findings = {finding}, .acl_line = {}, .acl_lasts = {}},
            .failure = error};
  }
}

std::string_view grade_name(Finding::Grade grade) {
  switch (grade) {
    case Finding::Grade::ok:
      return "ok";
    case Finding::Grade::warn:
      return "warn";
    case Finding::Grade::fail:
      return "FAIL";
  }
  return "";
}

/// The lines for all servers, without repetitions.
std::set<std::string> acl_lines(const std::vector<Examined>& all) {
  std::set<std::string> lines;
  for (const Examined& one : all) {
    if (!one.fitness.acl_line.empty())
      lines.insert(one.fitness.acl_line);
  }
  return lines;
}

std::string_view colour_of(Finding::Grade grade) {
  switch (grade) {
    case Finding::Grade::ok:
      return colour::green;
    case Finding::Grade::warn:
      return colour::yellow;
    case Finding::Grade::fail:
      return colour::red;
  }
  return colour::none;
}

std::string format_line(const Finding& f, bool coloured) {
  return fmt::format("{}{:<5}{} {:<12} {}\n",
                     coloured ? colour_of(f.grade) : colour::none,
                     grade_name(f.grade),
                     coloured ? colour::plain : colour::none,
                     f.topic,
                     printable(f.text));
}

std::ptrdiff_t count_findings(const std::vector<Examined>& all, Finding::Grade grade) {
  std::ptrdiff_t count = 0;
  for (const Examined& one : all) {
    const auto& findings = one.fitness.findings;
    count += std::count_if(findings.begin(), findings.end(), [grade](const Finding& f) { return f.grade == grade; });
  }
  return count;
}

/// The last line, which says whether to trust the servers.
Finding sum_up(const std::vector<Examined>& all) {
  const auto warnings = count_findings(all, Finding::Grade::warn);
  const auto failures = count_findings(all, Finding::Grade::fail);
  const std::string counts = fmt::format("{} FAIL, {} warn", failures, warnings);
  if (failures > 0)
    return {Finding::Grade::fail, "verdict", "do not trust it with locks: " + counts};
  if (warnings > 0)
    return {Finding::Grade::warn, "verdict", "can be trusted with locks, except where it warns: " + counts};
  return {Finding::Grade::ok, "verdict", "can be trusted with locks"};
}

std::string format_lines(const std::vector<Examined>& all, bool coloured) {
  std::string out;
  for (const Examined& one : all) {
    for (Finding f : one.fitness.findings) {
      if (all.size() > 1 && f.topic != "reachable")
        f.text = fmt::format("{}: {}", one.url, f.text);
      out += format_line(f, coloured);
    }
  }
  const auto lines = acl_lines(all);
  if (!lines.empty()) {
    const std::string_view which =
        lines.size() == 1 ? "this line suffices; paste it" : "these lines suffice; paste them";
    const std::string& lasts = all.front().fitness.acl_lasts;
    out += format_line({Finding::Grade::ok, "rights", fmt::format("{} into redis-cli; {}:", which, lasts)}, coloured);
  }
  for (const std::string& line : lines) out += printable(line) + "\n";
  return out + format_line(sum_up(all), coloured);
}

Json format_finding(const Finding& f) {
  return JsonObject{}.add("result", grade_name(f.grade)).add("topic", f.topic).add("text", f.text).json();
}

std::string format_all_json(const std::vector<Examined>& all, ExitCode code) {
  const auto server = [](const Examined& one) {
    return JsonObject{}.add("server", one.url).add("findings", json_array(one.fitness.findings, format_finding)).json();
  };
  const auto text = [](const std::string& line) { return Json{json_string(line)}; };
  return JsonObject{}
             .add("exit_status", static_cast<int>(code))
             .add("servers", json_array(all, server))
             .add("acl", json_array(acl_lines(all), text))
             .text() +
         "\n";
}

/// The status of a failure if half of the servers or more could not be examined; else it tells whether there is a FAIL.
ExitCode judge(const std::vector<Examined>& all) {
  const auto failed = [](const Examined& one) { return one.failure.has_value(); };
  const auto failures = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), failed));
  if (failures * 2 >= all.size())
    return std::find_if(all.begin(), all.end(), failed)->failure->code();
  return count_findings(all, Finding::Grade::fail) > 0 ? ExitCode::negative : ExitCode::ok;
}

}  // namespace

ExitCode check(const Settings& settings) {
  const Log log{settings.verbosity};
  Loop loop;
  auto servers = choose_servers(loop, settings, log);
  const observe::ExamineOptions how{.prefix = settings.prefix,
                                    .timeout = settings.timeout,
                                    .new_password = lock::Token::random().text(),  // the same on all servers
                                    .quorum = servers.size() > 1};
  std::vector<Examined> all;
  all.reserve(servers.size());
  for (redis::Server& server : servers) all.push_back(examine_one(server, how));
  const ExitCode code = judge(all);
  show(settings.json ? format_all_json(all, code) : format_lines(all, Screen::now().colour));
  for (const Examined& one : all) {
    if (one.failure)
      log.error(one.failure->what());
  }
  return code;
}

}  // namespace rlock::cli
