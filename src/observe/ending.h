#pragma once

#include <string>
#include <string_view>

namespace rlock::observe {

/// How a run ended.
struct Ending {
  enum class Kind {
    exited,  // with that status, as a shell would report it
    signalled,
    released,  // by a script; there is no status
    evicted,   // release --force
    replaced,  // run --replace
    lost,      // the lease could not be kept
    died,      // its lease ran out and nobody had released
    timeout,   // --max-runtime
    unknown,   // a later version has its own words
  };
  Kind kind = Kind::unknown;
  int number = 0;    // exit status or signal
  std::string by{};  // who evicted or replaced it: "root@db1 pid 8784"

  /// As Redis keeps it: "0".."255", "-" for no status, "signal:9", "evicted,ENC", "died" ... Takes anything.
  static Ending read(std::string_view text);

  /// For people: "0", "SIGKILL", "released", "evicted", "died".
  std::string brief() const;
  /// The same, and who did it: "evicted by root@db1 pid 8784".
  std::string describe() const;
  /// It is none of the ends that a run was meant to have.
  bool is_failure() const;

  friend bool operator==(const Ending&, const Ending&) = default;
};

/// "exited", "signalled", "evicted" ...
std::string_view ending_name(Ending::Kind kind);

}  // namespace rlock::observe
