#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlock::observe {

/// How a run ended.
struct Ending {
  enum class Kind {
    exited,  // with the status in `number`, as a shell would report it
    signalled,
    released,       // by `rlock release`; there is no status
    ended,          // a script that acquire --hold-pid watched ended without a release; its status is not known
    evicted,        // release --force
    replaced,       // run --replace
    lost,           // the lease could not be renewed in time
    died,           // the lease ran out, and the holder had not released the lock
    timeout,        // --max-runtime
    interrupted,    // told to stop (TERM, INT, HUP, QUIT), and then exited with 0: no success
    hold,           // no run: a hold has begun
    hold_ended,     // no run: somebody has ended a hold
    hold_replaced,  // no run: another hold has replaced one
    hold_over,      // no run: a hold has ended by itself
    unknown,        // a word of a later version
  };
  Kind kind = Kind::unknown;
  int number = 0;    // exit status or signal
  std::string by{};  // who evicted or replaced the holder: "root@db1 pid 8784"

  /// Reads the form in which Redis keeps it: "0".."255", "-" for no status, "signal:9", or a word such as "died", which
  /// may be followed by who did it, percent-encoded: "evicted,WHO". Accepts any text.
  static Ending read(std::string_view text);

  /// As a shell would report it; empty where it is not known.
  std::optional<int> status() const;
  /// For people: "0", "SIGKILL", "released", "evicted", "died".
  std::string brief() const;
  /// For a table of locks: "ok", "exit 3", "killed", "SIGTERM", "died".
  std::string in_words() const;
  /// brief(), and who did it: "evicted by root@db1 pid 8784".
  std::string describe() const;
  /// Whether it is the end of a run, and not of a hold, whose kinds stand together.
  bool is_of_run() const { return kind < Kind::hold || kind > Kind::hold_over; }
  /// Whether the run did not end as it was meant to.
  bool is_failure() const;
  /// Whether somebody should look into that: a failure, but of no run that was replaced, or stopped by a signal to
  /// rlock.
  bool needs_attention() const;

  friend bool operator==(const Ending&, const Ending&) = default;
};

/// "exited", "signalled", "evicted" ...
std::string_view ending_name(Ending::Kind kind);

}  // namespace rlock::observe
