#pragma once

#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

/// The language of the unit tests: a test is a function, each expectation has a sentence. One that does not hold is
/// printed to stderr and counted.
namespace rlock::unit {

inline int failures = 0;

inline void expect(bool holds, std::string_view sentence, std::string_view about = {}) {
  if (holds)
    return;
  ++failures;
  std::cerr << "failed: " << sentence << (about.empty() ? "" : ": ") << about << '\n';
}

template <typename T, typename U>
void expect_same(const T& actual, const U& expected, std::string_view sentence) {
  expect(actual == expected, sentence, fmt::format("expected {}, got {}", expected, actual));
}

/// The failure that `action` throws, or nothing.
template <typename Action>
std::optional<Error> failure_of(Action action) {
  try {
    (void)action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

template <typename Action>
void expect_failure(Action action, ExitCode code, std::string_view sentence, std::string_view about = {}) {
  const auto failure = failure_of(action);
  expect(failure && failure->code() == code, sentence, about);
}

// One for each file beside this one.
void test_assertions();
void test_durations();
void test_connections();
void test_escapes();
void test_columns();
void test_json();
void test_words();
void test_numbers();
void test_code_points();
void test_addresses();
void test_masking();
void test_answers();
void test_leases();
void test_verdicts();
void test_ballots();
void test_calendar();
void test_process_table();
void test_trees();
void test_merges();
void test_lock_names();
void test_configuration();
void test_timelines();
void test_timetables();
void test_observations();

}  // namespace rlock::unit
