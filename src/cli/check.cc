#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "observe/fitness.h"

namespace rlock::cli {
namespace {

using observe::Finding;

/// One server's report. One that cannot be asked has one finding, and the failure.
struct Examined {
  std::string url;
  observe::Fitness fitness;
  std::optional<Error> failure;
};

Examined examine_one(Loop& loop, redis::Server& server, const observe::Examination& how) {
  try {
    return {.url = server.address().url, .fitness = observe::examine(loop, server, how), .failure = {}};
  } catch (const Error& error) {
    const Finding finding{Finding::Grade::fail, "reachable", error.what()};
    return {.url = server.address().url, .fitness = {.findings = {finding}, .acl_line = {}}, .failure = error};
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

/// The same line for all servers is one.
std::set<std::string> acl_lines(const std::vector<Examined>& all) {
  std::set<std::string> lines;
  for (const Examined& one : all) {
    if (!one.fitness.acl_line.empty())
      lines.insert(one.fitness.acl_line);
  }
  return lines;
}

std::string format_lines(const std::vector<Examined>& all) {
  std::string out;
  for (const Examined& one : all) {
    for (const Finding& f : one.fitness.findings) {
      const std::string where = all.size() > 1 && f.topic != "reachable" ? one.url + ": " : "";
      out += fmt::format("{:<5} {:<12} {}\n", grade_name(f.grade), f.topic, printable(where + f.text));
    }
  }
  for (const std::string& line : acl_lines(all)) out += line + "\n";
  return out;
}

Json format_finding(const Finding& f) {
  return JsonObject{}.add("result", grade_name(f.grade)).add("topic", f.topic).add("text", f.text).json();
}

std::string format_all_json(const std::vector<Examined>& all, int status) {
  const auto server = [](const Examined& one) {
    return JsonObject{}.add("server", one.url).add("findings", json_array(one.fitness.findings, format_finding)).json();
  };
  const auto text = [](const std::string& line) { return Json{json_string(line)}; };
  return JsonObject{}
             .add("exit_status", status)
             .add("servers", json_array(all, server))
             .add("acl", json_array(acl_lines(all), text))
             .text() +
         "\n";
}

/// A majority must answer; then what fails is a FAIL.
ExitCode judge(const std::vector<Examined>& all) {
  const auto failed = [](const Examined& one) { return one.failure.has_value(); };
  const auto failures = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), failed));
  ExitCode code = ExitCode::ok;
  for (const Examined& one : all) {
    for (const Finding& f : one.fitness.findings) code = f.grade == Finding::Grade::fail ? ExitCode::not_holder : code;
  }
  if (failures * 2 < all.size())
    return code;
  return std::find_if(all.begin(), all.end(), failed)->failure->code();
}

}  // namespace

int check(const Settings& settings) {
  const Log log{settings.verbosity};
  auto servers = choose_servers(settings, log);
  const observe::Examination how{.prefix = settings.prefix, .timeout = settings.timeout, .quorum = servers.size() > 1};
  Loop loop;
  std::vector<Examined> all;
  for (redis::Server& server : servers) all.push_back(examine_one(loop, server, how));
  const int status = static_cast<int>(judge(all));
  print(settings.json ? format_all_json(all, status) : format_lines(all));
  for (const Examined& one : all) {
    if (one.failure)
      log.error(one.failure->what());
  }
  return status;
}

}  // namespace rlock::cli
