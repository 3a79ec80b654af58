#pragma once

#include <string>
#include <string_view>

namespace rlock::redis {

/// Who is asked for the addresses of a name: the machine, through its getent(1), or the resolver that is linked into
/// rlock. /etc/nsswitch.conf may name modules of another C library version, which a static program cannot load; getent
/// belongs to the machine and can. Our own resolver knows a hosts file and DNS, and serves where there is no getent.
enum class NameService { machine, ourselves };

/// What our resolver writes when it finds nothing, followed by the error number of getaddrinfo(3).
constexpr std::string_view error_word = "error ";

/// What a child process does: it writes the addresses of `host` to `out`, each at the beginning of a line, as getent
/// does, and exits. If there is no getent our own resolver answers in its place.
[[noreturn]] void ask(NameService service, const std::string& host, int out);

}  // namespace rlock::redis
