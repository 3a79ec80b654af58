#pragma once

#include <string>
#include <string_view>

namespace rlock {

/// SHA-1 (FIPS 180-4) in lower-case hexadecimal, as redis.sha1hex() returns it. It is our own because OpenSSL's would
/// initialise that whole library first.
std::string sha1_hex(std::string_view text);

}  // namespace rlock
