#pragma once

#include <string>

#include "books.h"
#include "world.h"

namespace sim {

/// Sits beside one server and audits its books after each script, whatever the clients believe: that they are in
/// order, that they differ from the books before only as this verb may change them, and that the answer fits both.
class Clerk {
 public:
  Clerk(World& world, const Redis& redis, std::string server, bool in_quorum);

  /// A script is about to run.
  void reads(const Words& command);
  /// It has.
  void audits(const Value& reply);
  /// Its clock has jumped: what was bounded by the old time may not be so any more.
  void doubts_times() { has_doubts_ = true; }
  /// A replica has taken over, which may have another ticket of a waiter than the one that this goes by.
  void doubts_tickets() { doubts_tickets_ = true; }

 private:
  void accuse(const std::string& what);
  void insist(bool fits, const char* what) {
    if (!fits)
      accuse(what);
  }

  // The books by themselves.
  void check_holders();
  void check_queue();
  void check_memory();
  void check_lives();

  // What has changed.
  void check_grants();
  void check_grant(const std::string& token, const Books::Record& r);
  void check_precedence(const std::string& token);
  void check_news();
  void check_leavers();
  void check_departures();
  void check_endings();
  void check_counters();
  void check_failures();
  void check_cooling(const std::string& token, const Books::Record& r);
  void check_crowd();
  void check_successes();
  void check_served();
  std::string expected_end(const std::string& token, const std::string& tail, const std::string& levels) const;

  // What was answered.
  void check_answer();
  void check_acquire();
  void check_refusal();
  void check_forgotten();
  void check_newest();
  void check_release();
  void check_renewal();
  void check_ends(const std::string& token);
  void check_cancel();
  bool is_new_settlement() const;
  void check_settlement();
  void check_force();
  void check_hold();

  const std::string& word(std::size_t i) const;  // of the question
  const std::string& said(std::size_t i) const;  // in the answer
  long long number(std::size_t i) const { return std::atoll(word(i).c_str()); }
  long long said_number(std::size_t i) const { return std::atoll(said(i).c_str()); }
  bool is(std::string_view verb) const { return verb_ == verb; }
  bool was_told(std::string_view outcome) const { return said(0) == outcome; }
  bool is_own(const std::string& token) const { return token == word(0); }
  bool releases_all() const { return is("release") && word(1).starts_with('*'); }
  bool is_named(long long fence) const;
  std::string option(std::string_view name) const;  // of acquire
  std::string remembered(std::size_t key) const;    // what is known of the level's end, or the token's
  bool was_published(const std::string& level, std::string_view beginning, std::string_view end = {}) const;
  std::string me() const;  // its name in the queue
  bool is_newest() const;  // an acquire with --latest or --replace
  long long born() const { return now_ - number(6); }
  bool is_alive(const Books::Waiter& waiter) const;
  bool is_barred() const;
  bool is_crowd_in_order() const;
  bool is_exhausted(const std::string& extras) const;
  long long seats_taken(const Books& books) const;

  World& world_;
  const Redis& redis_;
  std::string server_;
  bool in_quorum_;
  bool has_doubts_ = false, doubts_tickets_ = false;
  const Words books_keys_;  // of the lock

  // Of the script that has run last.
  std::string verb_;
  Words keys_, words_;
  const Value* reply_ = nullptr;
  long long now_ = 0;
  Books before_, books_;  // before it ran, and now
  std::string level_end_before_, token_end_before_;
  std::vector<std::string> fresh_;  // tokens that were granted the lock
};

}  // namespace sim
