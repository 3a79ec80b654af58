#pragma once

#include <span>
#include <string>

namespace rlock::cli {

/// What the completions of bash, zsh and fish ask for by `rlock __complete WORD...`: those of the line behind "rlock"
/// up to the cursor, the last being the one it stands in. Returns a line for each candidate, with a tab before what it
/// means; ":files" asks the shell for its own. Of a value behind '=' only that is a candidate. Names of locks come from
/// the Redis that the line chooses, within 150 ms or not at all, and nothing is said on failure.
std::string complete(std::span<const char* const> words);

}  // namespace rlock::cli
