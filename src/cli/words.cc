#include "cli/words.h"

#include <algorithm>
#include <string_view>

namespace rlock::cli {
namespace {

const Option* find_option(std::string_view word) {
  const std::string_view name = word.substr(0, word.starts_with("--") ? word.find('=') : 2);
  for (const Option& option : all_options()) {
    const bool short_match = option.names[1] != '-' && option.names.substr(0, 2) == name;
    if (short_match || option.long_name() == name)
      return &option;
  }
  return nullptr;
}

/// Whether the value of this option, if it takes one, is the next word.
bool takes_next_word(std::string_view word, const Option& option) {
  return !option.is_flag() && (word.starts_with("--") ? word.find('=') == std::string_view::npos : word.size() == 2);
}

/// Reads the words one after the other.
class Splitter {
 public:
  Splitter(int argc, const char* const* argv) : argv_(argv + 1, argv + argc) {}

  Words split() {
    for (; next_ < argv_.size() && argv_[next_] != "--" && words_.unknown_verb.empty(); ++next_) {
      const std::string& word = argv_[next_];
      const bool is_option = word.size() > 1 && word[0] == '-';
      is_option ? take_option(word) : take_plain(word);
    }
    const bool run = words_.verb != nullptr && words_.verb->subcommand == Subcommand::run;
    auto& rest = run ? words_.command : words_.keys;
    if (next_ < argv_.size())
      rest.insert(rest.end(), argv_.begin() + static_cast<std::ptrdiff_t>(next_) + 1, argv_.end());
    return std::move(words_);
  }

 private:
  void take_plain(const std::string& word) {
    if (words_.verb != nullptr) {
      words_.keys.push_back(word);
    } else if ((words_.verb = find_verb(word)) == nullptr) {
      words_.unknown_verb = word;
    }
  }

  void take_option(const std::string& word) {
    words_.help = words_.help || word == "--help" || word == "-h";
    words_.version = words_.version || word == "--version" || word == "-V";
    const Option* option = find_option(word);
    if (option == nullptr) {
      words_.options.push_back(word);
      return;
    }
    if (std::find(words_.mentioned.begin(), words_.mentioned.end(), option) == words_.mentioned.end())
      words_.mentioned.push_back(option);
    if (!option->is_flag() && word.starts_with("--") && word.ends_with('=')) {
      words_.options.push_back(word.substr(0, word.size() - 1));  // CLI11 would take the next word for the value
      words_.options.emplace_back();
      return;
    }
    words_.options.push_back(word);
    if (takes_next_word(word, *option) && next_ + 1 < argv_.size())
      words_.options.push_back(argv_[++next_]);
  }

  std::vector<std::string> argv_;
  std::size_t next_ = 0;
  Words words_;
};

}  // namespace

Words split(int argc, const char* const* argv) { return argc < 1 ? Words{} : Splitter{argc, argv}.split(); }

}  // namespace rlock::cli
