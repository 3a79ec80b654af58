#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "base/columns.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/loop.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/quorum.h"
#include "observe/fitness.h"
#include "observe/listing.h"

namespace rlock::cli {
namespace {

using observe::Finding;

constexpr std::string_view topic_of_quorum = "quorum";

/// The examination of one server. A server that cannot be examined has one finding, and the failure.
struct Examined {
  std::string url;
  observe::Fitness fitness;
  std::optional<Error> failure{};

  bool has_failed() const { return failure.has_value(); }
};

/// For a server that does not answer. The words of one that does tell what to do.
observe::Remedy advise(const redis::Server& server, const Error& failure) {
  if (!failure.may_pass() || server.was_reached())
    return {};
  return {.words = "check that the server runs and that this machine may reach it, or correct the address"};
}

Examined examine_one(redis::Server& server, const observe::ExamineOptions& how, const Settings& settings) {
  try {
    Examined one{.url = server.address().url, .fitness = observe::examine(server, how)};
    if (server.address().tls && settings.tls.insecure)
      one.fitness.findings.push_back(
          {Finding::Grade::warn, "tls", "not verified (--insecure): whoever is on the way can read and answer all"});
    return one;
  } catch (const Error& error) {
    const Error failure = with_context(error, settings, "", "");
    const Finding finding{Finding::Grade::fail, "reachable", failure.what(), advise(server, error)};
    return {.url = server.address().url, .fitness = {.findings = {finding}}, .failure = failure};
  }
}

/// What only all servers together show. Nothing of a single server, nor where half of them or more cannot be examined.
std::optional<Finding> judge_quorum(const std::vector<Examined>& all) {
  const std::size_t majority = lock::majority_of(all.size());
  std::vector<Milliseconds> votes_in;
  for (auto one = all.begin(); one != all.end(); ++one) {
    if (one->failure)
      continue;
    votes_in.push_back(one->fitness.votes_in);
    const std::string& id = one->fitness.run_id;
    const auto is_twin = [&id](const Examined& other) { return !id.empty() && other.fitness.run_id == id; };
    if (const auto twin = std::find_if(one + 1, all.end(), is_twin); twin != all.end())
      return Finding{Finding::Grade::fail, topic_of_quorum, lock::same_server(one->url, twin->url).what()};
  }
  if (all.size() == 1 || votes_in.size() < majority)
    return std::nullopt;
  std::sort(votes_in.begin(), votes_in.end());
  if (const Milliseconds wait = votes_in[majority - 1]; wait.count() > 0)
    return Finding{Finding::Grade::warn,
                   topic_of_quorum,
                   fmt::format("no lock is granted for {}, until a majority may vote", format_duration(wait))};
  if (all.size() == 2)
    return Finding{Finding::Grade::warn,
                   topic_of_quorum,
                   "both servers must answer, so the failure of either stops all locks; with three, one may fail"};
  return Finding{
      Finding::Grade::ok, topic_of_quorum, fmt::format("{} of {} servers must answer", majority, all.size())};
}

/// All that was found out.
struct Checkup {
  std::vector<Examined> servers;
  std::optional<Finding> quorum = judge_quorum(servers);
};

struct Look {
  std::string_view name, colour;
};

const Look& look_of(Finding::Grade grade) {
  static constexpr std::array<Look, 3> looks{{{"ok", colour::green}, {"warn", colour::yellow}, {"FAIL", colour::red}}};
  return looks.at(static_cast<std::size_t>(grade));
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

/// On a terminal the text is folded within its own column.
std::string format_line(std::string_view grade,
                        std::string_view in_colour,
                        std::string_view topic,
                        std::string_view text,
                        const Screen& screen) {
  constexpr std::size_t column = 19;
  const std::string_view plain = in_colour.empty() ? colour::none : colour::plain;
  const std::string shown = printable(text);
  const std::size_t width = screen.columns > 2 * column ? screen.columns - column : shown.size() + 1;
  std::string_view rest{shown};
  std::string out = fmt::format("{}{:<5}{} {:<12} {}\n", in_colour, grade, plain, topic, take_row(rest, width));
  while (!rest.empty()) out += fmt::format("{:{}}{}\n", "", column, take_row(rest, width));
  return out;
}

/// The lines to paste stand alone and are not folded, so that a mouse can pick them up whole.
std::string format_remedy(const observe::Remedy& remedy, const Screen& screen) {
  const auto advice = [&screen](std::string_view topic, std::string_view words) {
    return words.empty() ? "" : format_line("", colour::none, topic, words, screen);
  };
  std::string out = advice("what to do", remedy.words);
  for (const std::string& line : remedy.lines) out += printable(line) + "\n";
  return out + advice("", remedy.afterwards);
}

std::string format_finding(const Finding& f, const Screen& screen) {
  const Look& look = look_of(f.grade);
  const std::string_view in_colour = screen.colour ? look.colour : colour::none;
  return format_line(look.name, in_colour, f.topic, f.text, screen) + format_remedy(f.remedy, screen);
}

bool lacks_permission(const Finding& f) {
  return f.topic == observe::topic_of_permissions && f.grade == Finding::Grade::fail;
}

template <typename Predicate>
std::ptrdiff_t count_findings_if(const Checkup& all, Predicate is_meant) {
  std::ptrdiff_t count = 0;
  for (const Examined& one : all.servers)
    count += std::count_if(one.fitness.findings.begin(), one.fitness.findings.end(), is_meant);
  return all.quorum && is_meant(*all.quorum) ? count + 1 : count;
}

std::ptrdiff_t count_findings(const Checkup& all, Finding::Grade grade) {
  return count_findings_if(all, [grade](const Finding& f) { return f.grade == grade; });
}

/// How many servers could not be examined.
std::ptrdiff_t count_failures(const Checkup& all) {
  return std::count_if(all.servers.begin(), all.servers.end(), std::mem_fn(&Examined::has_failed));
}

/// The first line, which says whether to trust the servers.
Finding sum_up(const Checkup& all) {
  const auto warnings = count_findings(all, Finding::Grade::warn);
  const std::string_view which = all.servers.size() == 1 ? "this Redis" : "these servers";
  const auto conclude = [which](Finding::Grade grade, std::string_view before, std::string_view after) {
    return Finding{grade, "verdict", fmt::format("{}{}{}", before, which, after)};
  };
  const auto failures = count_failures(all);
  if (failures == std::ssize(all.servers))
    return conclude(Finding::Grade::fail, "", " could not be examined");
  if (all.quorum && all.quorum->grade == Finding::Grade::ok && failures > 0 &&
      count_findings(all, Finding::Grade::fail) == failures)
    return conclude(Finding::Grade::fail,
                    "a majority of ",
                    " can be trusted with locks, and the others could not be examined: fix what is marked FAIL below");
  if (const auto failed = count_findings(all, Finding::Grade::fail);
      failed > 0 && failed == count_findings_if(all, lacks_permission))
    return conclude(Finding::Grade::fail, "this user may not lock on ", ": fix what is marked FAIL below");
  if (count_findings(all, Finding::Grade::fail) > 0)
    return conclude(Finding::Grade::fail, "do not trust ", " with locks yet: fix what is marked FAIL below");
  if (warnings == 0)
    return conclude(Finding::Grade::ok, "", " can be trusted with locks");
  const std::string exception =
      warnings == 1 ? "the warning below says" : fmt::format("the {} warnings below say", warnings);
  return conclude(Finding::Grade::warn, "", " can be trusted with locks, except for what " + exception);
}

/// What gives a user the rights that rlock needs.
Finding explain_permissions(const std::vector<Examined>& all, const std::set<std::string>& lines) {
  const bool suffices = std::none_of(all.begin(), all.end(), [](const Examined& one) {
    return std::any_of(one.fitness.findings.begin(), one.fitness.findings.end(), lacks_permission);
  });
  const auto has_line = [](const Examined& one) { return !one.fitness.acl_line.empty(); };
  const observe::Fitness& first = std::find_if(all.begin(), all.end(), has_line)->fitness;
  Finding rights{.grade = suffices ? Finding::Grade::ok : Finding::Grade::fail,
                 .topic = "rights",
                 .remedy = {.lines = {lines.begin(), lines.end()}}};
  std::string what_for = "this user lacks some; as one who may give them";
  if (suffices && first.own_user.empty())
    what_for =
        "optional: to give rlock a user of its own (--username, and the word after the > in the file of "
        "--password-file) with no more than it needs";
  else if (suffices)
    what_for = fmt::format("the user {} has all that are needed; optional: to leave it no others", first.own_user);
  rights.text = fmt::format(
      "{}, paste into redis-cli{}:", what_for, first.acl_loss.empty() ? "" : fmt::format(" ({})", first.acl_loss));
  if (!first.acl_save.empty())
    rights.remedy.lines.push_back(first.acl_save);
  if (!suffices)
    rights.remedy.afterwards =
        "if Redis says that no pattern may follow *, the user has all keys or channels: leave out what begins with ~ "
        "or &";
  return rights;
}

/// Of many rights that a user lacks only the first few are named, since one line gives them all.
std::vector<Finding> cut_permissions(const std::vector<Finding>& findings) {
  constexpr std::ptrdiff_t most_named = 3;
  const auto lacking = std::count_if(findings.begin(), findings.end(), lacks_permission);
  if (lacking <= most_named + 1)
    return findings;
  std::vector<Finding> named;
  std::ptrdiff_t met = 0;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(named), [&](const Finding& f) {
    return !lacks_permission(f) || ++met <= most_named;
  });
  named.push_back({Finding::Grade::fail,
                   observe::topic_of_permissions,
                   fmt::format("{} more were refused; --json names them all", lacking - most_named)});
  return named;
}

/// All that is printed, in its order.
std::vector<Finding> collect(const Checkup& all) {
  std::vector<Finding> findings{sum_up(all)};
  for (const Examined& one : all.servers) {
    for (Finding f : cut_permissions(one.fitness.findings)) {
      if (all.servers.size() > 1 && f.topic != "reachable")
        f.text = fmt::format("{}: {}", one.url, f.text);
      findings.push_back(std::move(f));
    }
  }
  if (all.quorum)
    findings.push_back(*all.quorum);
  if (const auto lines = acl_lines(all.servers); !lines.empty())
    findings.push_back(explain_permissions(all.servers, lines));
  return findings;
}

/// With --quiet it leaves out what is good, so that cron mails only what is not.
std::string format_lines(const Checkup& all, bool quiet, const Screen& screen) {
  std::string out;
  for (const Finding& f : collect(all)) {
    if (!quiet || f.grade != Finding::Grade::ok)
      out += format_finding(f, screen);
  }
  return out;
}

/// "...; paste into redis-cli: `CONFIG SET appendonly yes`, `CONFIG REWRITE`", and what the lines do not fix.
std::string text_with_remedy(const Finding& f) {
  std::string text = f.remedy.words.empty() ? f.text : fmt::format("{}; {}", f.text, f.remedy.words);
  for (const std::string& line : f.remedy.lines)
    text += fmt::format("{} `{}`", &line == &f.remedy.lines.front() ? "" : ",", line);
  return f.remedy.afterwards.empty() ? text : fmt::format("{}; {}", text, f.remedy.afterwards);
}

Json json_of(const Finding& f) {
  return JsonObject{}
      .add("result", look_of(f.grade).name)
      .add("topic", f.topic)
      .add("text", text_with_remedy(f))
      .json();
}

std::string format_all_json(const Checkup& all, ExitCode code) {
  const auto server = [](const Examined& one) {
    return JsonObject{}.add("server", one.url).add("findings", json_array(one.fitness.findings, json_of)).json();
  };
  const auto text = [](const std::string& line) { return Json{json_string(line)}; };
  return JsonObject{}
             .add("exit_status", static_cast<int>(code))
             .add("verdict", json_of(sum_up(all)))
             .add("servers", json_array(all.servers, server))
             .add("quorum", json_or_null(all.quorum, json_of))
             .add("acl", json_array(acl_lines(all.servers), text))
             .text() +
         "\n";
}

/// The status of a failure if half of the servers or more could not be examined; else it tells whether there is a FAIL.
ExitCode judge(const Checkup& all) {
  if (count_failures(all) * 2 >= std::ssize(all.servers))
    return std::find_if(all.servers.begin(), all.servers.end(), std::mem_fn(&Examined::has_failed))->failure->code();
  return count_findings(all, Finding::Grade::fail) > 0 ? ExitCode::negative : ExitCode::ok;
}

}  // namespace

ExitCode check(const Settings& settings) {
  const Log log{settings.verbosity};
  Loop loop;
  auto servers = choose_servers(loop, settings, log, observe::listing_limits);
  const observe::ExamineOptions how{.prefix = settings.prefix,
                                    .timeout = settings.timeout,
                                    .new_password = lock::Token::random().text(),  // the same on all servers
                                    .max_lease = servers.size() > 1 ? settings.max_lease : Milliseconds{0}};
  std::vector<Examined> all;
  all.reserve(servers.size());
  for (redis::Server& server : servers) all.push_back(examine_one(server, how, settings));
  const Checkup checkup{.servers = std::move(all)};
  const ExitCode code = judge(checkup);
  const Screen screen = Screen::now();
  show(settings.json ? format_all_json(checkup, code)
                     : format_lines(checkup, settings.verbosity == Verbosity::quiet, screen));
  for (const Examined& one : checkup.servers) {
    if (one.failure && !screen.is_terminal)  // on which it stands already
      log.error(one.failure->what());
  }
  return code;
}

}  // namespace rlock::cli
