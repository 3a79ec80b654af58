#pragma once

#include <string>
#include <string_view>

namespace rlock {

/// FIPS 180-4, in lower-case hexadecimal, as redis.sha1hex() has it. Of our own, because the one of OpenSSL sets up all
/// of that library first.
std::string sha1_hex(std::string_view text);

}  // namespace rlock
