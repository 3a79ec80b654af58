#include "observe/word_reader.h"

#include <algorithm>

#include "base/number.h"
#include "base/word.h"

namespace rlock::observe {
namespace {

constexpr long long largest_count = 1'000'000;
constexpr int words_of_owner = 6;

}  // namespace

std::string_view WordReader::word() { return take_word(rest_); }

std::optional<long long> WordReader::number() { return parse_number(word(), 0LL, largest_whole); }

int WordReader::count() { return static_cast<int>(std::min(number_or_zero(), largest_count)); }

lock::Owner WordReader::owner() {
  const std::string_view begin = rest_;
  for (int i = 0; i < words_of_owner; ++i) word();
  return lock::Owner::decode(begin.substr(0, begin.size() - rest_.size()));
}

std::optional<std::string> find_extra(std::string_view words, std::string_view name) {
  WordReader rest{words};
  while (!rest.rest().empty()) {
    const std::string_view word = rest.word();
    if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
      return std::string{word.substr(name.size() + 1)};
  }
  return std::nullopt;
}

}  // namespace rlock::observe
