#include "cli/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/trust.h"
#include "base/word.h"
#include "cli/subcommand.h"
#include "cli/value.h"
#include "redis/address.h"

namespace rlock::cli {
namespace {

/// Options that contradict each other. In one source both together are an error; --wait in a stronger source overrides
/// --nonblock in a weaker one. --once and --once-per need an exclusive lock, since several holders at a time would do
/// the work several times.
constexpr auto rivals = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"nonblock", "wait"},    {"exclusive", "shared"}, {"exclusive", "slots"}, {"shared", "slots"},
    {"once", "once-per"},    {"once", "shared"},      {"once", "slots"},      {"once-per", "shared"},
    {"once-per", "slots"},   {"quiet", "verbose"},    {"token", "force"},     {"for", "until"},
    {"for", "end"},          {"until", "end"},        {"note", "end"},        {"json", "prometheus"},
    {"json", "timeline"},    {"follow", "timeline"},  {"failed", "timeline"}, {"lines", "timeline"},
    {"prometheus", "watch"},
});

bool are_rivals(const Option& a, const Option& b) {
  return std::any_of(rivals.begin(), rivals.end(), [&](const auto& pair) {
    return (pair.first == a.name && pair.second == b.name) || (pair.first == b.name && pair.second == a.name);
  });
}

bool is_denied(const Given& given) { return given.option->is_flag() && given.values.back().text == "no"; }

/// `--slots 1` contradicts only --shared, since it means --exclusive.
bool contradict(const Given& a, const Given& b) {
  const auto is_shared = [](const Given& given) { return given.option->name == "shared"; };
  const auto is_one_slot = [](const Given& given) {
    return given.option->name == "slots" && given.values.back().text == "1";
  };
  const bool both_exclusive = (is_one_slot(a) || is_one_slot(b)) && !is_shared(a) && !is_shared(b);
  return are_rivals(*a.option, *b.option) && !is_denied(a) && !is_denied(b) && !both_exclusive;
}

bool is_overridden(const Given& given, std::span<const Layer> stronger) {
  return std::any_of(stronger.begin(), stronger.end(), [&](const Layer& layer) {
    return std::any_of(layer.begin(), layer.end(), [&](const Given& other) {
      return other.option == given.option || contradict(other, given);
    });
  });
}

/// Refuses a comment behind a value, and quotes around it, which neither crontabs nor we understand: they would be a
/// part of the value. Only in a remark for people may that be meant.
void refuse_habits(const Option& option, const Value& value) {
  const auto has = [&value](std::string_view sign) { return value.text.find(sign) != std::string::npos; };
  if (option.name == "note" || option.name == "holder")
    return;
  if (has(" #") || has("\t#") || has("# "))
    value.refuse("a comment needs a line of its own");
  const bool is_quoted = value.text.size() > 1 && value.text.front() == value.text.back() &&
                         (value.text.front() == '"' || value.text.front() == '\'');
  if (is_quoted)
    value.refuse("write the value without quotes");
}

std::vector<Value> redis_from_environment(const Option& option) {
  if (const auto urls = from_environment(redis_variable)) {
    refuse_habits(option, {.text = *urls, .origin = redis_variable});
    return split_urls(*urls);
  }
  if (const auto url = from_environment("REDIS_URL"))
    return {{.text = *url, .origin = "REDIS_URL"}};
  return {};
}

std::vector<Value> variable_of(const Option& option) {
  const std::string variable{option.environment};
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || (*value == '\0' && variable != prefix_variable))  // a prefix may be empty
    return {};
  const Value given{.text = value, .origin = variable};
  refuse_habits(option, given);
  return {given};
}

/// The NAME=value that hands an option on to a nested rlock. The servers, without their passwords, and the prefix are
/// handed on by run.cc. A password file that is a pipe is not handed on: it has been read, and a nested rlock would
/// block on it.
std::optional<std::string> handed_on(const Option& option, const Value& value) {
  const bool apart = option.name == "redis" || option.name == "prefix";
  if (option.environment.empty() || apart || value.text.empty())
    return std::nullopt;
  std::error_code error;
  if (option.name == "password-file" && !std::filesystem::is_regular_file(value.text, error))
    return std::nullopt;
  return fmt::format("{}={}", option.environment, value.text);
}

/// How a command that is to be pasted repeats an option of our command line that tells which Redis is meant, and how it
/// is reached; empty for others.
std::string repeat(const Option& option, const Value& value) {
  const bool is_about_server =
      (option.section == Section::redis && option.name != "redis-timeout") || option.name == "tls-server-name";
  if (!is_about_server || value.origin != fmt::format("--{}", option.name))
    return "";
  if (option.is_flag())
    return fmt::format(" --{}", option.name);
  return option.name == "redis" ? " -r " + shell_word(redis::strip_password(value.text))
                                : fmt::format(" --{}={}", option.name, visible_shell_word(value.text));
}

/// FILE:LINE, if a file says so.
std::string place_of(const Value& value) {
  return value.fault == ExitCode::config ? value.origin.substr(0, value.origin.rfind(": ")) : "";
}

constexpr std::size_t longest_file = 64UL * 1024;

[[noreturn]] void refuse(const std::string& place, std::string_view why) {
  Value{.origin = place, .fault = ExitCode::config}.refuse(why);
}

/// In the words of a file, which has no dashes.
std::string advise_instead_of(std::string_view name) {
  if (name == "timeout")
    return "; write `wait = D` (for the lock) or `redis-timeout = D` (for an answer of Redis)";
  if (name == "password")
    return "; write `password-file = FILE`, or put it into the URL of `redis`";
  if (name == "host" || name == "port" || name == "url" || name == "server")
    return "; write `redis = redis://HOST`, which may end with :PORT";
  if (name.starts_with("--") && find_option(name.substr(2)) != nullptr)
    return "; write it without the dashes";
  if (find_option(name) != nullptr)
    return fmt::format("; write --{} on the command line", name);
  for (const Option& option : all_options()) {
    const bool is_variable = !option.environment.empty() && option.environment == name;
    if (is_variable || (option.letter != '\0' && name == std::string_view{&option.letter, 1} && option.set != nullptr))
      return fmt::format("; write `{} = {}`", option.name, option.is_flag() ? "yes" : option.value);
  }
  return suggest_option(name, "", [](const Option& option) { return option.set != nullptr; });
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The first word of a line, since what follows may be a password.
std::string begin_of(std::string_view line) {
  const auto colon = line.find(':');
  const auto end = std::min(line.find_first_of(" \t"), line.substr(0, colon + 3).ends_with("://") ? line.npos : colon);
  return redis::mask_password(line.substr(0, end)) + (end == std::string_view::npos ? "" : " ...");
}

/// Reads one file's lines from top to bottom.
class Parser {
 public:
  Parser(const std::string& file, Subcommand reader) : file_(file), reader_(reader) {}

  void line(std::string_view text) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // some editors write it
    if (++number_ == 1 && text.starts_with(byte_order_mark))
      text.remove_prefix(byte_order_mark.size());
    text = trim(text);
    if (text.empty() || text.starts_with('#'))
      return;
    if (text.starts_with('[')) {
      begin_section(text);
    } else {
      take_option(text);
    }
  }

  std::vector<Layer> take_layers() { return std::move(layers_); }

 private:
  std::string place() const { return fmt::format("{}:{}", file_, number_); }

  void begin_section(std::string_view text) {
    const std::string_view name = text.ends_with(']') ? trim(text.substr(1, text.size() - 2)) : "";
    section_ = find_subcommand(name);
    if (section_ == nullptr && find_option(name) != nullptr)
      refuse(place(), fmt::format("unknown section '{0}'; write the option without brackets: `{1} = ...`", text, name));
    if (section_ == nullptr)
      refuse(
          place(),
          fmt::format("unknown section '{}'; write [run], or another subcommand{}{}",
                      text,
                      suggest_subcommand(name),
                      name.find(' ') == std::string_view::npos ? "; lines for all of them stand above the first section"
                                                               : "; a single lock has none"));
  }

  void take_option(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      refuse(place(),
             fmt::format("'{}' is neither `option = value` nor `[subcommand]`{}", begin_of(text), describe_bare(text)));
    const std::string_view name = trim(text.substr(0, equals));
    const Option* option = find_option(name);
    if (option == nullptr || option->set == nullptr)
      refuse(place(), fmt::format("unknown option '{}'{}", name, advise_instead_of(name)));
    refuse_misplaced(*option);
    if (section_ != nullptr && !option->belongs_to(section_->id))
      refuse(place(), fmt::format("{} is not an option of {}", name, section_->name));
    take_value(*option,
               {.text = locate(*option, trim(text.substr(equals + 1))),
                .origin = fmt::format("{}: {}", place(), name),
                .fault = ExitCode::config});
  }

  /// Refuses what must be said each time.
  void refuse_misplaced(const Option& option) const {
    constexpr std::string_view unasked = "which would break locks or hold them unasked";
    constexpr auto misplaced = std::to_array<std::pair<std::string_view, std::string_view>>({
        {"key", "which would name the lock of every run"},
        {"output", "since a script depends on it"},
        {"force", unasked},
        {"now", unasked},
        {"fence", unasked},
        {"hold", unasked},
        {"for", unasked},
        {"until", unasked},
        {"end", unasked},
    });
    for (const auto& [name, why] : misplaced) {
      if (option.name == name)
        refuse(place(), fmt::format("{0} has no place in a file, {1}; write --{0} on the command line", name, why));
    }
  }

  static std::string describe_bare(std::string_view text) {
    std::string_view name = text.substr(0, text.find_first_of(": "));
    name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
    const Option* option = find_option(name);
    if (option != nullptr && option->set != nullptr)
      return fmt::format("; write `{} = {}`", name, option->is_flag() ? "yes" : option->value);
    return text.starts_with(';') ? "; a comment begins with #" : "";
  }

  /// A file that is named without its folder lies beside ours, wherever rlock is started.
  std::string locate(const Option& option, std::string_view value) const {
    const bool is_file = option.is_file() && !value.empty() && value != "-";
    if (is_file && value.starts_with("~"))
      refuse(place(), fmt::format("{}: only a shell knows what ~ means; write the whole path", option.name));
    return is_file ? (std::filesystem::path{file_}.parent_path() / value).string() : std::string{value};
  }

  void take_value(const Option& option, Value value) {
    refuse_habits(option, value);
    Settings scratch;
    option.set(scratch, option.resolve(value));
    check_repetition(option);
    if (!option.belongs_to(reader_) || (section_ != nullptr && section_->id != reader_))
      return;
    Layer& layer = layers_[section_ == nullptr ? 0 : 1];
    const auto same = std::find_if(layer.begin(), layer.end(), [&](const Given& g) { return g.option == &option; });
    Given& given = same == layer.end() ? layer.emplace_back(Given{&option, {}}) : *same;
    given.values.push_back(std::move(value));
  }

  /// Refuses an option that is given twice, since one of the values would be ignored. Only `redis` may repeat.
  void check_repetition(const Option& option) {
    const std::pair seen{section_, &option};
    if (!option.may_repeat() && std::find(seen_.begin(), seen_.end(), seen) != seen_.end())
      refuse(place(), fmt::format("{} is given twice", option.name));
    seen_.push_back(seen);
  }

  const std::string& file_;
  Subcommand reader_;
  int number_ = 0;
  const SubcommandEntry* section_ = nullptr;  // nullptr above the first section
  std::vector<std::pair<const SubcommandEntry*, const Option*>> seen_;
  std::vector<Layer> layers_{2};
};

std::string read_text(const Fd& fd, const std::string& file) {
  std::string text;
  std::array<char, 8192> buffer;
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count == 0)
      return text;
    if (count < 0)
      refuse(file, ::strerror(errno));
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > longest_file)
      refuse(file, "too large for a configuration file");
  }
}

bool has_password(const std::vector<Layer>& layers) {
  const auto secret = [](const Value& v) { return redis::mask_password(v.text) != v.text; };
  return std::any_of(layers.begin(), layers.end(), [&](const Layer& layer) {
    const Given* urls = find_given(layer, "redis");
    return urls != nullptr && std::any_of(urls->values.begin(), urls->values.end(), secret);
  });
}

struct FileLayers {
  std::vector<Layer> layers;               // the weakest first
  std::vector<std::string> with_password;  // files that contain one
};

/// `asked_by`: "--config " or "RLOCK_CONFIG "; empty for one of the usual files, which need not exist.
void read_file(const std::string& file, std::string_view asked_by, Subcommand subcommand, FileLayers& into) {
  const std::string shown = fmt::format("{}{}", asked_by, file);
  const Fd fd = open_trusted(file, shown);
  if (!fd && asked_by.empty() && (errno == ENOENT || errno == ENOTDIR))
    return;
  if (!fd && (errno == EMFILE || errno == ENFILE))
    throw os_error(shown, errno);
  if (!fd)
    refuse(shown, ::strerror(errno));
  auto layers = parse_config(read_text(fd, shown), file, subcommand);
  if (has_password(layers))
    into.with_password.push_back(file);
  std::move(layers.begin(), layers.end(), std::back_inserter(into.layers));
}

/// Reads RLOCK_REDIS (URLs separated by spaces) or else REDIS_URL, and the variable of every other option.
Layer read_environment(Subcommand subcommand) {
  Layer layer;
  for (const Option& option : all_options()) {
    if (option.environment.empty() || !option.belongs_to(subcommand))
      continue;
    auto values = option.name == "redis" ? redis_from_environment(option) : variable_of(option);
    // A password in the environment overrides a password file that a configuration file names.
    const bool silences = option.name == "password-file" && password_from_environment();
    if (!values.empty() || silences)
      layer.push_back({&option, std::move(values)});
  }
  return layer;
}

/// Whether these are the addresses that a file gives, without the passwords in them. A run hands them on like that, and
/// the runs inside it find the passwords where it found them.
bool only_lacks_passwords(const Given& variable, std::span<const Layer> files) {
  for (auto layer = files.rbegin(); variable.option->name == "redis" && layer != files.rend(); ++layer) {
    const Given* of_file = find_given(*layer, "redis");
    if (of_file == nullptr)
      continue;
    const auto is_bare = [](const Value& mine, const Value& its) {
      return mine.text == redis::strip_password(its.text);
    };
    return std::equal(
        variable.values.begin(), variable.values.end(), of_file->values.begin(), of_file->values.end(), is_bare);
  }
  return false;
}

/// The configuration file that is asked for, if there is one.
std::optional<Value> chosen_file(const Layer& line) {
  if (const Given* given = find_given(line, "config"))
    return given->values.back();
  if (const auto file = from_environment("RLOCK_CONFIG"))
    return Value{.text = *file, .origin = "RLOCK_CONFIG"};
  return std::nullopt;
}

FileLayers read_files(const std::optional<Value>& chosen, Subcommand subcommand) {
  FileLayers files;
  if (chosen) {
    chosen->check_file();
    read_file(chosen->text, chosen->origin + ' ', subcommand, files);
    return files;
  }
  read_file("/etc/rlock.conf", {}, subcommand, files);
  if (const auto folder = from_environment("XDG_CONFIG_HOME")) {
    read_file(*folder + "/rlock.conf", {}, subcommand, files);
  } else if (const auto home = from_environment("HOME")) {
    read_file(*home + "/.config/rlock.conf", {}, subcommand, files);
  }
  return files;
}

constexpr std::string_view variable_prefix = "RLOCK_";

/// What is wrong with RLOCK_... if it counts for nothing; empty where it may be meant for somebody else.
std::string doubt_variable(std::string_view name) {
  std::vector<std::string_view> known{"PASSWORD", "KEY", "TOKEN", "FENCE", "TTL_MS", "SLOT", "HELD"};
  for (const Option& option : all_options()) {
    if (!option.environment.empty())
      known.push_back(option.environment.substr(variable_prefix.size()));
  }
  if (std::find(known.begin(), known.end(), name) != known.end())
    return {};
  if (name == "TIMEOUT")
    return "; write RLOCK_REDIS_TIMEOUT (for an answer of Redis)";
  if (name == "URL" || name == "HOST" || name == "REDIS_URL")
    return "; write RLOCK_REDIS";
  std::string word = lower(name);
  std::replace(word.begin(), word.end(), '_', '-');
  const Option* option = find_option(word);
  return option != nullptr && option->set != nullptr
             ? fmt::format("; write --{}, or a line in a configuration file", word)
             : did_you_mean(name, known, variable_prefix);
}

/// A warning of variables such as RLOCK_TTL or RLOCK_REDS; empty where there are none.
std::string doubt_variables() {
  std::string doubts;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text{*variable};
    const std::string_view name = text.substr(0, text.find('='));
    const std::string doubt =
        name.starts_with(variable_prefix) ? doubt_variable(name.substr(variable_prefix.size())) : "";
    if (!doubt.empty())
      doubts += fmt::format("{}{} is not read{}", doubts.empty() ? "" : "; ", name, doubt);
  }
  return doubts;
}

}  // namespace

std::optional<std::string> from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0')
    return std::nullopt;
  return value;
}

std::vector<Value> split_urls(std::string_view text) {
  std::vector<Value> urls;
  while (!text.empty()) {
    const std::string_view url = take_word(text);
    if (!url.empty())
      urls.push_back({.text = std::string{url}, .origin = redis_variable});
  }
  return urls;
}

const Given* find_given(const Layer& layer, std::string_view option) {
  const auto found = std::find_if(layer.begin(), layer.end(), [&](const Given& g) { return g.option->name == option; });
  return found == layer.end() ? nullptr : &*found;
}

void check_consistency(const Layer& layer) {
  for (auto given = layer.begin(); given != layer.end(); ++given) {
    const Value& value = given->values.back();
    if (given->values.size() > 1 && !given->option->may_repeat())
      throw Error{value.fault, fmt::format("{} is given twice", value.origin)};
    const auto rival =
        std::find_if(layer.begin(), given, [&](const Given& other) { return contradict(other, *given); });
    if (rival == given)
      continue;
    const std::string& other = rival->values.back().origin;  // of the same source, which is named once
    throw Error{value.fault, fmt::format("{} and {}: choose one", value.origin, other.substr(other.rfind(' ') + 1))};
  }
}

bool is_consistent_with(const Option& option, const Layer& layer) {
  const Given more{&option, {Value{}}};
  return std::none_of(layer.begin(), layer.end(), [&more](const Given& given) {
    return contradict(given, more) || (given.option == more.option && !more.option->may_repeat());
  });
}

Settings merge(std::span<const Layer> layers) {
  Settings settings;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const Given& given : layers[i]) {
      if (is_overridden(given, layers.subspan(i + 1)))
        continue;
      for (const Value& text : given.values) {
        const Value value = given.option->resolve(text);
        if (given.option->set != nullptr)
          given.option->set(settings, value);
        settings.places[given.option->name] = place_of(value);
        if (auto variable = handed_on(*given.option, value))
          settings.handed_on.push_back(*std::move(variable));
        settings.server_words += repeat(*given.option, value);
      }
    }
  }
  return settings;
}

Error placed(const Settings& settings, std::initializer_list<std::string_view> options, const Error& error) {
  std::string place;
  for (const std::string_view option : options) {
    const auto found = settings.places.find(option);
    if (found != settings.places.end() && found->second.empty())
      return error;
    if (found != settings.places.end())
      place = found->second;
  }
  return place.empty() ? error : Error{ExitCode::config, fmt::format("{}: {}", place, error.what())};
}

std::optional<std::string> password_from_environment() {
  auto password = from_environment("RLOCK_PASSWORD");
  return password ? password : from_environment("REDISCLI_AUTH");
}

std::vector<Layer> parse_config(std::string_view text, const std::string& file, Subcommand subcommand) {
  if (text.find('\0') != std::string_view::npos)
    refuse(file, "not a text file");
  Parser parser{file, subcommand};
  while (!text.empty()) parser.line(take_word(text, '\n'));
  std::vector<Layer> layers = parser.take_layers();
  for (const Layer& layer : layers) check_consistency(layer);
  return layers;
}

Settings read_settings(Subcommand subcommand, const Layer& line) {
  FileLayers files = read_files(chosen_file(line), subcommand);
  Layer environment = read_environment(subcommand);
  if (!password_from_environment())
    std::erase_if(environment, [&](const Given& given) { return only_lacks_passwords(given, files.layers); });
  files.layers.push_back(std::move(environment));
  files.layers.push_back(line);
  Settings settings = merge(files.layers);
  settings.secret_files = std::move(files.with_password);
  if (std::string words = doubt_variables(); !words.empty())
    settings.doubts.push_back(std::move(words));
  return settings;
}

}  // namespace rlock::cli
