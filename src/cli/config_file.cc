#include "cli/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"
#include "base/word.h"
#include "cli/subcommand.h"
#include "cli/suggest.h"
#include "redis/masking.h"

namespace rlock::cli {
namespace {

constexpr std::size_t longest_file = 64UL * 1024;

[[noreturn]] void refuse(const std::string& place, std::string_view why) {
  Value{.text = {}, .origin = place, .fault = ExitCode::config}.refuse(why);
}

std::vector<std::string_view> option_names() {
  std::vector<std::string_view> names;
  for (const Option& option : all_options()) {
    if (option.set != nullptr)
      names.push_back(option.name);
  }
  return names;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Reads one file's lines from top to bottom.
class Parser {
 public:
  Parser(const std::string& file, Subcommand reader) : file_(file), reader_(reader) {}

  void line(std::string_view text) {
    ++number_;
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
    if (section_ == nullptr)
      refuse(place(),
             fmt::format("unknown section '{}'; write [run], or another subcommand{}", text, suggest_subcommand(name)));
  }

  void take_option(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      refuse(place(), fmt::format("'{}' is neither `option = value` nor `[subcommand]`", text));
    const std::string_view name = trim(text.substr(0, equals));
    const Option* option = find_option(name);
    if (option == nullptr || option->set == nullptr)
      refuse(place(), fmt::format("unknown option '{}'{}", name, did_you_mean(name, option_names())));
    if (section_ != nullptr && !option->belongs_to(section_->id))
      refuse(place(), fmt::format("{} is not an option of {}", name, section_->name));
    take_value(*option,
               {.text = std::string{trim(text.substr(equals + 1))},
                .origin = fmt::format("{}: {}", place(), name),
                .fault = ExitCode::config});
  }

  void take_value(const Option& option, Value value) {
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
    return std::any_of(layer.begin(), layer.end(), [&](const Given& given) {
      return given.option->name == "redis" && std::any_of(given.values.begin(), given.values.end(), secret);
    });
  });
}

/// `asked_by`: "--config " or "RLOCK_CONFIG "; empty for one of the usual files, which need not exist.
void read_file(const std::string& file, std::string_view asked_by, Subcommand subcommand, FileLayers& into) {
  const Fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const std::string shown = fmt::format("{}{}", asked_by, file);
  if (!fd && asked_by.empty() && (errno == ENOENT || errno == ENOTDIR))
    return;
  if (!fd && (errno == EMFILE || errno == ENFILE))
    throw os_error(shown, errno);
  if (!fd)
    refuse(shown, ::strerror(errno));
  auto layers = parse_config(read_text(fd, shown), file, subcommand);
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    if ((info.st_mode & (S_IRGRP | S_IROTH)) != 0 && has_password(layers))
      into.exposed.push_back(file);
    if ((info.st_mode & S_IWOTH) != 0)
      into.writable.push_back(file);
  }
  std::move(layers.begin(), layers.end(), std::back_inserter(into.layers));
}

}  // namespace

std::vector<Layer> parse_config(std::string_view text, const std::string& file, Subcommand subcommand) {
  if (text.find('\0') != std::string_view::npos)
    refuse(file, "not a text file");
  Parser parser{file, subcommand};
  while (!text.empty()) parser.line(take_word(text, '\n'));
  std::vector<Layer> layers = parser.take_layers();
  for (const Layer& layer : layers) check_consistency(layer);
  return layers;
}

FileLayers read_config_files(const std::optional<Value>& chosen, Subcommand subcommand) {
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

}  // namespace rlock::cli
