#include "lock/name.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using lock::LockName;

std::string keys_of(std::string_view prefix, std::string_view name) {
  std::string all;
  for (const std::string& key : LockName{prefix, name}.keys()) all += (all.empty() ? "" : " ") + key;
  return all;
}

void refuses(std::string_view name) {
  expect_failure([&] { return LockName{"rlock:", name}; }, ExitCode::usage, "a bad name is a usage error", name);
}

}  // namespace

void test_lock_names() {
  expect_same(keys_of("rlock:", "job"),
              "rlock:job {rlock:job}:queue {rlock:job}:waiters {rlock:job}:meta {rlock:job}:history "
              "{rlock:job}:seats",
              "a lock's keys are in one slot of a cluster");
  expect_same(keys_of("rlock:", "x{tag}y"),
              "rlock:x{tag}y rlock:x{tag}y:queue rlock:x{tag}y:waiters rlock:x{tag}y:meta rlock:x{tag}y:history "
              "rlock:x{tag}y:seats",
              "a name's own tag is kept");
  expect_same(keys_of("", "job"),
              "job {job}:queue {job}:waiters {job}:meta {job}:history {job}:seats",
              "the prefix may be empty");
  for (const char* name : {"",
                           "a\nb",
                           "{",
                           "}",
                           "{}",
                           "a{",
                           "a}b",
                           "}{",
                           "{a}{b}",
                           "{{a}}",
                           "{a}:queue",
                           "x{a}:waiters",
                           "{a}:meta",
                           "{a}:history",
                           "{a}:seats"})
    refuses(name);
  refuses(std::string(513, 'x'));
  for (const auto& [prefix, name] : {std::pair{"", "{job}"}, {"{", "job}"}, {"{rlock:", "job}"}, {"{job", "}"}}) {
    expect_failure([&] { LockName{prefix, name}; }, ExitCode::usage, "a tag alone shares keys with another lock", name);
  }
  for (const auto& [prefix, name] : {std::pair{"{app}", "job"}, {"", "{app}job"}, {"app{", "job}"}})
    expect_same(LockName(prefix, name).keys()[1], std::string{prefix} + name + ":queue", "a tag may be part of a key");
  expect_same(LockName("", std::string(512, 'x')).text().size(), 512UL, "a name may have 512 bytes");
  for (const char* name : {"a:queue", "*", "a b", "\x1b[31m", "\xff"})
    expect_same(LockName("p:", name).text(), name, "any other bytes are taken as they are");
  for (const char* key : {"{rlock:job}:queue", "{a}:waiters", "x{tag}:meta", "{a}:history", "{a}:seats"})
    expect(lock::is_companion_key(key), "a companion is no lock", key);
  expect(!lock::is_companion_key("rlock:job:queue"), "a lock's name may look like a companion's");
}

}  // namespace rlock::unit
