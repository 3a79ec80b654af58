#include "cli/words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/options.h"

namespace rlock::cli {
namespace {

using Line = std::vector<std::string>;

/// Stands at the end of every value that was given as `--option=VALUE`, since CLI11 would take the next word as the
/// value of `--option=`, and reports `--flag` and `--flag=true` alike. No argument can contain a NUL.
constexpr char mark = '\0';

std::string with_mark(const std::string& word) {
  return word.starts_with("--") && word.find('=') != std::string::npos ? word + mark : word;
}

std::string without_mark(std::string text) {
  if (text.ends_with(mark))
    text.pop_back();
  return text;
}

/// The options whose names occur anywhere in the line. Declaring all 50 to CLI11 would cost every start 100 us.
std::vector<const Option*> mentioned_options(const Line& line, std::optional<Subcommand> subcommand) {
  std::vector<const Option*> found;
  const auto add = [&found](const Option* option) {
    if (option != nullptr && std::find(found.begin(), found.end(), option) == found.end())
      found.push_back(option);
  };
  for (const std::string_view word : line) {
    if (word.starts_with("--")) {
      add(find_option(word.substr(2, word.find('=') - 2)));
    } else if (word.starts_with('-')) {
      for (const char letter : word.substr(1)) add(find_option(letter, subcommand));
    }
  }
  return found;
}

/// The option at the end of the line, which may be the last of a bundle such as -qk; nullptr if there is none.
const Option* last_option(const Line& line, std::optional<Subcommand> subcommand) {
  const std::string_view word = line.empty() ? std::string_view{} : line.back();
  if (word.starts_with("--"))
    return find_option(word.substr(2));
  return word.starts_with('-') ? find_option(word.back(), subcommand) : nullptr;
}

/// Two options share a letter; CLI11 must know it only for the one that it means here.
std::string names_for_cli11(const Option& option, std::optional<Subcommand> subcommand) {
  std::string names = "--" + std::string{option.name};
  if (find_option(option.letter, subcommand) == &option)
    names += std::string{",-"} + option.letter;
  return names;
}

/// One reading of the line by CLI11.
class Reading {
 public:
  Reading(const Line& line, std::optional<Subcommand> subcommand) : options_(mentioned_options(line, subcommand)) {
    app_.set_help_flag();
    app_.allow_extras();
    for (const Option* option : options_) {
      const std::string names = names_for_cli11(*option, subcommand);
      CLI::Option* read = option->is_flag() ? app_.add_flag(names) : app_.add_option(names);
      read->take_all();  // so that we, not CLI11, report an option that is given twice
      read_.push_back(read);
    }
    Line reversed;
    std::transform(line.rbegin(), line.rend(), std::back_inserter(reversed), with_mark);
    try {
      app_.parse(reversed);
    } catch (const CLI::ArgumentMismatch&) {
      incomplete_ = last_option(line, subcommand);  // only there can a value be missing
      if (incomplete_ == nullptr)
        throw;
    }
  }

  Words words() const {
    Words words;
    words.incomplete = incomplete_;
    for (std::string& extra : app_.remaining()) {
      const bool is_option = extra.size() > 1 && extra[0] == '-';
      words.unknown_first = words.unknown_first || (is_option && words.plain.size() <= 1);
      (is_option ? words.unknown : words.plain).push_back(without_mark(std::move(extra)));
    }
    for (std::size_t i = 0; i < options_.size(); ++i) {
      Given given{options_[i], {}};
      for (const std::string& text : read_[i]->results()) given.values.push_back(value_of(*options_[i], text));
      if (!given.values.empty())
        words.options.push_back(std::move(given));
    }
    return words;
  }

 private:
  static Value value_of(const Option& option, const std::string& text) {
    const bool bare_flag = option.is_flag() && text == "true";  // how CLI11 reports a flag
    return {.text = bare_flag ? "yes" : without_mark(text), .origin = "--" + std::string{option.name}};
  }

  CLI::App app_;
  std::vector<const Option*> options_;
  std::vector<CLI::Option*> read_;  // CLI11's counterparts of options_, in the same order
  const Option* incomplete_ = nullptr;
};

bool reads_otherwise(const Line& line, Subcommand subcommand) {
  return mentioned_options(line, subcommand) != mentioned_options(line, std::nullopt);
}

}  // namespace

const Given* Words::find(std::string_view option) const {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const Given& g) { return g.option->name == option; });
  return found == options.end() ? nullptr : &*found;
}

Words read_words(int argc, const char* const* argv) {
  const Line all(argv + std::min(argc, 1), argv + argc);
  const auto dashes = std::find(all.begin(), all.end(), "--");
  const Line line(all.begin(), dashes);
  Words words = Reading{line, std::nullopt}.words();
  const SubcommandEntry* subcommand = words.plain.empty() ? nullptr : find_subcommand(words.plain.front());
  if (subcommand != nullptr && reads_otherwise(line, subcommand->id))
    words = Reading{line, subcommand->id}.words();
  if (subcommand != nullptr && !words.plain.empty())
    words.plain.erase(words.plain.begin());
  words.subcommand = subcommand;
  if (dashes != all.end()) {
    const bool is_command = subcommand == nullptr || subcommand->id == Subcommand::run;
    auto& rest = is_command ? words.command : words.plain;
    rest.insert(rest.end(), std::next(dashes), all.end());
  }
  return words;
}

}  // namespace rlock::cli
