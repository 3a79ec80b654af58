#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "network.h"
#include "world.h"

namespace sim {

/// --max-lease of everybody who uses several servers: how long one that has restarted does not vote. It is short, since
/// they ask each of the servers again and again.
constexpr Nanos longest_quorum_lease = 5 * second;

/// What one process does: it asks for the lock, keeps it while it works, gives it up, and perhaps begins again.
struct ClientPlan {
  enum class Kind {
    run,      // as `rlock run`: renews, listens, stops when told to
    acquire,  // as `rlock acquire` and `rlock release`: nobody renews, or a script does
    force,    // as `rlock release --force`
    hold,     // as `rlock hold` for its ttl, or until then; if the status is 0 it ends that hold when its work is done
  };
  Kind kind = Kind::run;
  Nanos start = 0;
  int rounds = 1;
  Nanos pause = 0;  // between rounds
  Nanos work = 0;
  int status = 0;       // of the command
  bool obeys = true;    // TERM ends the command at once, else only KILL does
  bool renews = false;  // a script, with `rlock renew`
  bool now = false;     // `release --force --now`
  bool until = false;   // `hold --until`
  bool late = false;    // it also forces those to give up the lock whom it has seen in its last round
  int capacity = 1;
  Nanos ttl = 0;
  std::optional<Nanos> wait{};  // nothing: for ever
  Nanos min_hold = 0;
  bool latest = false, replace = false, first = false;
  std::optional<int> max_waiting{};
  Nanos backoff = 0;  // at most three times that
  std::optional<int> attempts{};
  std::string once{};
  Nanos per = 0;                        // --once-per
  std::optional<std::size_t> inside{};  // it is started by the command of that client, and has its token
  double rate = 1;                      // of its clock

  bool is_plain() const {
    return kind == Kind::run && !latest && !replace && !first && !max_waiting && !skips() && min_hold == 0 && !wait &&
           !inside;
  }
  /// Whether it need not run if others have succeeded.
  bool skips() const { return !once.empty() || per > 0; }
};

/// What goes wrong, from when and for how long.
struct FaultPlan {
  enum class Kind {
    cut,        // connections between one client, or all, and a host break
    partition,  // nothing passes between them
    freeze_host,
    slow_host,
    restart,  // the host's; `flag`: with its data
    flush_scripts,
    no_memory,      // the host refuses what may need memory
    freeze_client,  // stopped, or its machine suspended
    kill_client,    // `flag`: its machine, so that nobody hears of it
    step_clock,     // the host's wall clock jumps
    fail_over,      // the host's replica is promoted, as far as it has come
    foreign_key,    // another program uses the lock's key, if nobody else does
    lost_seats,     // Redis evicts the key `seats`, or somebody takes the lock's expiry away
    mute,           // as `cut`, but neither side hears of it
  };
  Kind kind = Kind::cut;
  Nanos at = 0;
  Nanos duration = 0;
  std::size_t client = 0, host = 0;
  bool flag = false;
};

/// Everything that a seed decides beforehand. The rest it decides as the world goes on: see Random.
struct Plan {
  std::uint64_t seed = 0;
  std::vector<Clock> hosts;
  Weather weather;
  bool has_replica = false;
  bool confirms = false;                     // everybody asks with --replicas 1
  bool may_listen = true, may_count = true;  // SUBSCRIBE, PUBSUB
  bool is_watched = false;                   // somebody subscribes to all channels
  bool has_many_ids = false;                 // each round with --once has an ID of its own
  bool is_hasty = false;                     // scripts stop early in long lists, as they do with a crowd: see script.cc
  std::vector<ClientPlan> clients;
  std::vector<FaultPlan> faults;
  std::set<std::size_t> omitted;  // numbers of clients, then of faults, that are left out

  bool has(std::size_t item) const { return !omitted.contains(item); }
  std::size_t items() const { return clients.size() + faults.size(); }
  bool is_quorum() const { return hosts.size() > 1; }
  /// Whether nothing goes wrong at all.
  bool is_fair() const;
  /// When the last fault is over.
  Nanos calm_at() const;
  /// For how much longer a lock may be held because a server's clock was stepped, which nobody notices at once.
  Nanos set_back() const;
};

/// `may_be_wide`: most worlds have many of the rare options at once. Old seeds were made without that.
Plan make_plan(std::uint64_t seed, bool may_be_wide = true);
std::string describe(const Plan& plan);
const char* name(FaultPlan::Kind kind);

}  // namespace sim
