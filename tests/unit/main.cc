#include "expect.h"

int main() {
  using namespace rlock::unit;
  test_assertions();
  test_durations();
  test_calendar();
  test_connections();
  test_escapes();
  test_columns();
  test_json();
  test_words();
  test_numbers();
  test_code_points();
  test_addresses();
  test_masking();
  test_answers();
  test_leases();
  test_verdicts();
  test_ballots();
  test_process_table();
  test_trees();
  test_merges();
  test_lock_names();
  test_configuration();
  test_timelines();
  test_timetables();
  test_observations();
  return failures == 0 ? 0 : 1;
}
