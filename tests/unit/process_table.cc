#include "run/process_table.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "expect.h"

namespace rlock::unit {
namespace {

/// A directory like the /proc of a kernel that does not list children: that takes CONFIG_PROC_CHILDREN.
class OldProc {
 public:
  OldProc() : directory_(std::filesystem::temp_directory_path() / fmt::format("rlock-unit.{}", ::getpid())) {
    std::filesystem::create_directory(directory_);
  }
  OldProc(const OldProc&) = delete;
  OldProc& operator=(const OldProc&) = delete;
  ~OldProc() { std::filesystem::remove_all(directory_); }

  const char* path() const { return directory_.c_str(); }
  void add(pid_t pid, pid_t parent, long long start) const {
    const auto process = directory_ / std::to_string(pid);
    std::filesystem::create_directory(process);
    std::ofstream{process / "stat"} << fmt::format(
        "{0} (a) b) S {1} {0} {0} 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 {2} 8192 3\n", pid, parent, start);
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace

void test_process_table() {
  const pid_t us = ::getpid();
  const OldProc proc;
  proc.add(32'000, us, 6'000'000'000);
  proc.add(300, us, 7'000'000'000);  // the PIDs have started again from the lowest
  proc.add(31'000, us, 5'000'000'000);
  proc.add(301, 300, 7'000'000'000);
  const run::ProcessTable table{proc.path()};
  expect_same(
      table.our_children(), std::vector<pid_t>{31'000, 32'000, 300}, "children that are scanned for come by age");
  std::vector<pid_t> one_by_one;
  run::ProcessTable::Children children{table};
  while (const pid_t child = children.next()) one_by_one.push_back(child);
  std::sort(one_by_one.begin(), one_by_one.end());
  expect_same(one_by_one, std::vector<pid_t>{300, 31'000, 32'000}, "children that are scanned for without memory");

  expect_same(table.members_of(301).value_or(std::vector<pid_t>{}), std::vector<pid_t>{301}, "the members of a group");
}

}  // namespace rlock::unit
