#pragma once

#include <array>
#include <string_view>

namespace rlock::lock {

/// A Lua script together with the parts that it needs, and its SHA1 as SCRIPT LOAD returns it. The contract of a script
/// stands in the first lines of its file. embed.cmake makes scripts.cc from these files; `rlock __script NAME` prints
/// what is sent.
struct Script {
  std::string_view name;
  std::string_view sha1;
  std::string_view source;
};

namespace scripts {
extern const Script acquire;
extern const Script cancel;
extern const Script force;
extern const Script hold;
extern const Script log;
extern const Script recall;
extern const Script release;
extern const Script renew;
extern const Script settle;
extern const Script status;

constexpr std::size_t count = 10;
extern const std::array<const Script*, count> all;
}  // namespace scripts

}  // namespace rlock::lock
