#pragma once

#include <span>
#include <string>

namespace rlock::cli {

/// Answers `rlock __complete WORD...`, which the completions of bash, zsh and fish call. The words are those after
/// "rlock" up to the cursor, the last of which is being completed. Returns one line for each candidate: the word, a tab
/// and what it means. A line ":files" or ":processes" asks the shell for its own candidates. Of `--option=value` only
/// the value is a candidate. Names of locks come from the Redis that the line chooses, or are left out if it does not
/// answer in time; failures are silent.
std::string complete(std::span<const char* const> words);

}  // namespace rlock::cli
