#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan.h"
#include "world.h"

namespace sim {

/// Watches what the clients believe and are told, and accuses the world of whatever rlock promises will not happen. It
/// knows nothing of how locks are kept on Redis, but for what the scripts `status` and `log` answer.
///
/// A client believes that it holds the lock from the moment it is told so until its lease's own end, or until it gives
/// the lock up. All its times are true.
class Judge {
 public:
  Judge(World& world, const Plan& plan) : world_(world), plan_(plan) {}

  using Number = std::size_t;  // of an acquisition, or of a question that may become one

  Number asks(const std::string& who, const ClientPlan& client);
  void is_refused(Number n, const std::string& why);
  void is_turned_away(Number n, const std::string& why);
  void is_done(Number n);
  void is_superseded(Number n);
  void is_exhausted(Number n);    // by its --attempts
  void is_crowded_out(Number n);  // by its --max-waiting
  void fails(Number n, const std::string& why);
  /// `sent`: when the request was sent from which its lease counts.
  void is_granted(Number n, const std::string& token, long long fence, int slot, Nanos sent, Nanos believes_until);
  /// `sent`: when it asked for that.
  void is_extended(Number n, Nanos sent, Nanos believes_until);
  /// Says why it stops before its work is done.
  void is_lost(Number n);
  void is_evicted(Number n);
  /// From now on it does not rely on the lock.
  void stops(Number n);
  /// A script gives up the lock, and with it the runs inside do.
  void stops_all(const std::string& token);
  /// `how`: what the history is to say.
  void gives_up(Number n, std::string how);
  void gave_up(Number n, bool known, bool lost);
  void dies(const std::string& who);

  /// Holders that nobody renews are removed at once; `now`: all are.
  void forces(bool now);
  /// The holder with that fence was marked: it is not renewed any more.
  void is_marked(long long fence);
  void loses_data(std::size_t host);
  /// A replica has taken its master's place: what was written last is lost, but for what waited for it.
  void fails_over();
  /// Nobody who asks from now on is granted the lock for that long. It was asked for at `asked`.
  void is_blocked(Nanos time, Nanos asked);
  void is_on_hold(Nanos at_least, Nanos at_most, Nanos asked);
  void is_unblocked();
  /// Somebody has asked to end the hold, and has had no answer: the next one may be ended instead.
  void may_end_late() { ends_late_ = true; }
  /// Somebody is about to delete another program's key.
  void is_cleared();
  /// The hold was ended, as far as its operator knows, who asked for that at `asked`.
  void is_open_again(Nanos asked);
  /// A server's clock has jumped: what was promised before does not count.
  void forgets();

  /// What a server knows when all have gone.
  struct Remains {
    std::string state;
    long long waiting = 0;
    std::map<long long, std::vector<std::string>> history;  // fence -> how it ended
    std::map<long long, std::string> holders;               // fence -> who, as history tells
    std::map<std::string, long long> counters;
    long long skipped = 0;
    std::string last_skipped;           // who
    std::map<std::string, Nanos> keys;  // and how long each of them lives on
  };
  void ends(const Remains& remains);

  long grants() const { return grants_; }

 private:
  struct Acquisition {
    std::string who;
    ClientPlan client;
    enum class State { asking, refused, believes, over } state = State::asking;
    Nanos asked = 0, granted = 0, sent = 0, until = 0, stopped = 0, marked = forever;
    long long fence = 0;
    int slot = 0;
    bool excused = false, died = false, released = false;
    std::string how;    // it said that it ended
    std::string token;  // that of an enclosing run, if it holds that one's lock
    bool is_inner = false;
  };
  bool believes(const Acquisition& a) const;
  bool is_script(const Acquisition& a) const;
  static bool has_failed(const Acquisition& a);
  bool exclude_each_other(const Acquisition& a, const Acquisition& b) const;
  void check_exclusion(const Acquisition& granted);
  void check_fence(const Acquisition& granted);
  void check_order(const Acquisition& granted);
  void check_delay(const Acquisition& granted);
  void check_idle(const Acquisition& granted);
  void check_once(const Acquisition& granted);
  bool is_last_success(const Acquisition& success, const Acquisition& granted) const;
  void check_min_hold(const Acquisition& granted);
  void check_backoff(const Acquisition& granted);
  std::vector<const Acquisition*> granted_before(long long fence) const;
  /// How long nobody gets the lock after a run that has failed: longer after each further failure.
  Nanos cooling(const Acquisition& failed, bool at_most) const;
  /// How many attempts had failed since the last success when it asked, of those that count for it.
  long failures_before(const Acquisition& asked, bool at_most) const;
  void check_attempts(const Acquisition& granted);
  void check_crowd(const Acquisition& granted);
  void check_inside(const Acquisition& granted);
  Nanos end_of_levels(const Acquisition& a) const;
  Nanos begin_of_levels(const Acquisition& a) const;
  bool was_broken(const Acquisition& a) const;
  /// A waiter for work that somebody does is told at once when it is done.
  void check_news(const Acquisition& idle);
  void check_block(const Acquisition& granted);
  /// How long it may take until a waiter has what it waits for, where nothing goes wrong.
  Nanos promptness() const;
  /// What the network may have made of the order of two questions.
  Nanos doubt() const;
  void check_history(const Remains& remains);
  bool was_granted_again(const Acquisition& a, const Remains& remains) const;
  void check_memory(const Remains& remains);
  bool is_lenient() const { return !plan_.is_fair() || plan_.is_quorum(); }

  World& world_;
  const Plan& plan_;
  std::vector<Acquisition> all_;
  Nanos forced_ = -1, forced_now_ = -1;  // when somebody last did
  Nanos forgotten_ = -1, weakened_ = -1, rewound_ = -1;
  Nanos blocked_since_ = 0, blocked_until_ = 0, block_asked_ = 0;
  Nanos held_until_ = 0;        // by an operator's hold, at the latest
  Nanos would_hold_until_ = 0;  // the same if none was ended
  bool ends_late_ = false;
  std::set<std::size_t> forgetful_;
  std::set<std::string> given_up_;  // tokens, by scripts
  long grants_ = 0;
  long long turned_away_ = 0, noted_ = 0;  // since it was first used, which is when Redis begins to remember
  Nanos first_grant_ = -1;
};

}  // namespace sim
