#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/fd.h"
#include "run/process_table.h"

namespace rlock::run {

/// Makes this process the one to which orphans among its descendants are given: nobody can leave the tree, not by
/// setsid(2) and not by a double fork. Throws Error{os}.
void adopt_orphans();

/// What became of the children that have ended; each is reaped.
struct Reaped {
  std::optional<int> leader_status;  // wait status of `leader`, if it was among them
  bool any_left = false;             // children that still run
};
Reaped reap(pid_t leader);

/// Processes that KILL has not ended: they hang in the kernel, or became another user's.
struct Survivors {
  int count = 0;
  std::array<pid_t, 3> some{};  // of them; zero where there are fewer, or /proc does not show them
};

/// All descendants of this process. A signal reaches who was listed and nobody who got a number later: children keep
/// theirs until we reap them, and all further descendants are held by a descriptor (pidfd) from before they are seen
/// to be listed until the signal is sent.
class Tree {
 public:
  /// Throws Error{os} where /proc cannot be opened.
  Tree() = default;

  /// Whether every descendant can be seen.
  bool is_visible() const { return processes_.is_ours(); }

  /// Children that are older than this one, which is not reaped yet, and all of theirs are not of the tree.
  void spare_elders_of(pid_t child);

  /// It is killed too, but nobody waits for it.
  void do_not_count(pid_t child) { uncounted_ = child; }

  /// Who there is. Called for the pages that it brings in, which a later call would have to wait for.
  void look();

  /// To every descendant, or only to those in a process group.
  void signal(int number, std::optional<pid_t> group = std::nullopt);

  /// One round of killing: stops them all, so that nobody can fork on while others are looked for, then kills them. Who
  /// was forked meanwhile, or could not be held for lack of descriptors, becomes our child when its parents die, and is
  /// met in the next round.
  void kill() noexcept;

  /// The same without a byte of memory. It takes as many rounds as there are generations: the next one becomes ours
  /// when the one before it is dead.
  void kill_children() const noexcept;

  /// Who is still there after such rounds, `any_left` by what reap() says.
  Survivors survivors(bool any_left);

 private:
  struct Member {
    pid_t pid;
    Fd handle;  // none of a child of ours
  };

  void forget();
  bool find(int number);
  void find_children();
  void find_children_of(pid_t parent, int number);
  void signal(const Member& member, int number) const;

  ProcessTable processes_;
  std::vector<pid_t> spared_;
  pid_t uncounted_ = -1;
  std::vector<Member> members_;
  std::unordered_set<pid_t> known_;  // their numbers
};

}  // namespace rlock::run
