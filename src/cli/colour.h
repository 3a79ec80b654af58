#pragma once

#include <string_view>

/// The escape sequences that select a terminal's colours.
namespace rlock::cli::colour {

constexpr std::string_view none{};
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view dim = "\x1b[2m";
constexpr std::string_view red = "\x1b[31m";
constexpr std::string_view green = "\x1b[32m";
constexpr std::string_view yellow = "\x1b[33m";
constexpr std::string_view plain = "\x1b[0m";

}  // namespace rlock::cli::colour
