#pragma once

#include <string>
#include <string_view>

namespace rlock::redis {

/// Who is asked for the addresses of a name: the machine, by its getent(1), or the resolver that is linked into us.
/// /etc/nsswitch.conf may name modules that a static program cannot load when they are of another C library's version;
/// getent is the machine's own and can. Ours is for where there is no getent, and knows a hosts file and DNS.
enum class NameService { machine, ourselves };

/// What our resolver writes when it finds nothing, before the number that getaddrinfo(3) gave.
constexpr std::string_view error_word = "error ";

/// The whole life of a child process: writes the addresses of `host` to `out`, each at the beginning of a line, as
/// getent does. Where there is no getent our resolver answers for the machine.
[[noreturn]] void ask(NameService service, const std::string& host, int out);

}  // namespace rlock::redis
