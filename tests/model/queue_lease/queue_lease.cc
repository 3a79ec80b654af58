// A model of one lock's lease and queue, in every order in which things can happen to one server and three clients.
//
//   queue_lease [--MUTANT] [FAULTS]
//
// The server (server.h) does what acquire, renew, release, cancel and force in src/lock/*.lua do for an exclusive lock,
// each script in one step. The clients (client.h) do what `rlock run` does in taker.cc, renewer.cc and keeper.cc: they
// ask once, then queue, and sleep for as long as they are told, or until a message makes them ask or hands them the
// lock. They start a command on a grant that is not too old, renew, end the command, release, and start over; or they
// stop waiting and cancel. Time passes in ticks (world.h), when nobody has anything left to do but what a fault has
// delayed. The faults: a request or a reply is late, or never comes; a request that was given up still arrives, at any
// time; a message to a waiter is late or lost; its subscription breaks; a client dies while it waits or holds, seen or
// unseen by the server; a holder is evicted, and hears of it or not. FAULTS (2) of them happen, of any kind, at any
// time.
//
// What must hold: no two commands run at once; nobody is renewed who was evicted; the queue is served in its order; no
// waiter that no fault has hit is taken for dead; the lock does not lie free while such a waiter sleeps at the head of
// the queue; and, with one fault fewer, every client that does not die and does not stop waiting gets the lock in the
// end.
//
// The model leaves out shared locks and slots, re-entry, min-hold, locks that the server loses, and clocks of different
// rates, for which the real lease ends 1 % earlier. The quorum has a model of its own.
//
// With a MUTANT (listed in server.h) one thing is broken, and one of these must fail. Then, or if the model of the real
// program fails, it prints the events that lead there, and exits with 1.
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "starvation.h"

namespace rlock::model {
namespace {

constexpr std::array<std::string_view, 3> network_names{"", " (the request is late)", " (the reply is late)"};

constexpr std::array<std::pair<std::string_view, Mutant>, 10> mutants{{
    {"--credit-at-reply", Mutant::credit_at_reply},
    {"--credit-at-message", Mutant::credit_at_message},
    {"--release-before-reaping", Mutant::release_before_reaping},
    {"--wake-without-reservation", Mutant::wake_without_reservation},
    {"--cancel-without-walk", Mutant::cancel_without_walk},
    {"--sleep-until-woken", Mutant::sleep_until_woken},
    {"--hand-over-for-good", Mutant::hand_over_for_good},
    {"--evict-at-once", Mutant::evict_at_once},
    {"--renew-the-evicted", Mutant::renew_the_evicted},
    {"--reuse-token", Mutant::reuse_token},
}};

World first_world(Byte faults, bool watched) {
  World world{};
  world.holder = nobody;
  world.faults_left = faults;
  world.client[0].watched = watched;
  return world;
}

/// Clients swap places between worlds; in the printed events each keeps one name.
class Story {
 public:
  explicit Story(const World& first, Mutant mutant) : world_(first), mutant_(mutant) {}

  void tell(const Move& move) {
    if (move.is_tick()) {
      std::puts("  a tick passes");
    } else {
      const auto action = actions[move.action].name;
      const auto network = network_names[static_cast<std::size_t>(move.network)];
      std::printf("  %c %s%s\n", names_[move.client], action.data(), network.data());
    }
  }

  void tell_and_make(const Move& move) {
    tell(move);
    make(move, world_, mutant_);
    number_tickets_anew(world_);
    const auto order = rank_clients(world_);
    arrange(world_, order);
    const auto old = names_;
    for (std::size_t i = 0; i < order.size(); ++i) names_[i] = old[order[i]];
  }

  void end(std::string text) const {
    for (char& c : text) {
      if (c >= '0' && c < '0' + clients)
        c = names_[static_cast<std::size_t>(c - '0')];
    }
    std::printf("%s\n", text.c_str());
  }

 private:
  World world_;
  Mutant mutant_;
  std::array<char, clients> names_{'A', 'B', 'C'};
};

int tell(const Atlas& atlas, Mutant mutant, Atlas::Number number, const std::optional<Move>& last, std::string end) {
  Story story{atlas[0], mutant};
  for (const Move& move : atlas.story_of(number)) story.tell_and_make(move);
  if (last)
    story.tell(*last);
  story.end(std::move(end));
  return 1;
}

int explore(Atlas& atlas, Mutant mutant) {
  for (Atlas::Number number = 0; number < atlas.size(); ++number) {
    const World world = atlas[number];
    bool stuck = true;
    try {
      for_each_next(world, mutant, [&](const Move& move, const World& next) {
        atlas.add(next, number, move);
        stuck = false;
      });
    } catch (const BadMove& bad) {
      return tell(atlas, mutant, number, bad.move, bad.violation.what);
    }
    if (stuck)
      return tell(atlas, mutant, number, {}, "nothing can happen any more");
  }
  return 0;
}

int check_starvation(Byte faults, Mutant mutant) {
  Atlas atlas{first_world(faults, true)};
  if (explore(atlas, mutant) != 0)
    return 1;
  Starvation starvation{atlas, mutant};
  if (const auto round = starvation.find())
    return tell(atlas, mutant, *round, {}, "0 may wait for ever");
  std::printf(
      "%u worlds with %d faults: no wait is longer than %d ticks\n", atlas.size(), faults, starvation.longest_wait());
  return 0;
}

int check_safety(Byte faults, Mutant mutant) {
  Atlas atlas{first_world(faults, false)};
  if (explore(atlas, mutant) != 0)
    return 1;
  std::printf("%u worlds with %d faults: exclusion, order and wake-ups hold\n", atlas.size(), faults);
  return 0;
}

int usage() {
  std::fputs("usage: queue_lease [--MUTANT] [FAULTS]\n", stderr);
  return 64;
}

int run(int argc, char** argv) {
  Mutant mutant = Mutant::none;
  Byte faults = 2;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto* named = std::find_if(mutants.begin(), mutants.end(), [word](const auto& m) { return m.first == word; });
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), faults);
    if (named != mutants.end()) {
      mutant = named->second;
    } else if (error != std::errc{} || end != word.data() + word.size() || faults < 1) {
      return usage();
    }
  }
  const int starved = check_starvation(faults - 1, mutant);
  return starved != 0 ? starved : check_safety(faults, mutant);
}

}  // namespace
}  // namespace rlock::model

int main(int argc, char** argv) { return rlock::model::run(argc, argv); }
