#include "run/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/word.h"

namespace rlock::run {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

/// A path below /proc, formatted without allocating memory.
class Path {
 public:
  template <typename... Parts>
  explicit Path(fmt::format_string<Parts...> format, Parts&&... parts) {
    *fmt::format_to_n(text_.data(), text_.size() - 1, format, std::forward<Parts>(parts)...).out = '\0';
  }
  const char* text() const { return text_.data(); }

 private:
  std::array<char, 64> text_{};
};

Fd open_below(const Fd& proc, const Path& path, int flags = 0) {
  return Fd{::openat(proc.get(), path.text(), O_RDONLY | O_CLOEXEC | flags)};
}

/// A `status` may be long: it names every group that the user is in.
std::string read_file(const Fd& proc, const Path& path) {
  const Fd fd = open_below(proc, path);
  std::array<char, 4096> buffer;
  std::string text;
  ssize_t count = 0;
  while (fd && (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  return text;
}

std::vector<pid_t> numbered_entries(const Fd& proc, const Path& path) {
  std::vector<pid_t> entries;
  Fd fd = open_below(proc, path, O_DIRECTORY);
  const std::unique_ptr<DIR, CloseDir> dir{fd ? ::fdopendir(fd.get()) : nullptr};
  if (dir)
    fd.release();
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    if (const auto number = parse_number<pid_t>(static_cast<const char*>(entry->d_name), 1))
      entries.push_back(*number);
  }
  return entries;
}

/// The fields of /proc/PID/stat that matter here. The process name, in parentheses, may itself contain parentheses.
struct Stat {
  bool is_zombie = false;
  pid_t parent = 0;
  pid_t group = 0;
  int threads = 0;
  std::int64_t start = 0;  // in clock ticks since the boot

  /// No thread of it runs any more: the main thread may be a zombie while others run.
  bool is_dead() const { return is_zombie && threads <= 1; }
};

/// All zeros for a process that cannot be examined. Allocates no memory.
Stat read_stat(const Fd& proc, pid_t pid) {
  constexpr std::size_t parent = 4;  // fields as proc(5) numbers them
  constexpr std::size_t group = 5;
  constexpr std::size_t threads = 20;
  constexpr std::size_t start = 22;
  std::array<char, 1024> buffer;
  const Fd fd = open_below(proc, Path{"{}/stat", pid});
  const ssize_t count = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  std::string_view rest{buffer.data(), static_cast<std::size_t>(std::max(count, ssize_t{0}))};
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  take_word(rest);
  const std::string_view state = take_word(rest);
  std::array<std::int64_t, start + 1> fields{};
  for (std::size_t field = parent; field <= start && !rest.empty(); ++field)
    fields[field] = parse_number<std::int64_t>(take_word(rest)).value_or(0);
  return {.is_zombie = state == "Z" || state == "X",
          .parent = static_cast<pid_t>(fields[parent]),
          .group = static_cast<pid_t>(fields[group]),
          .threads = static_cast<int>(fields[threads]),
          .start = fields[start]};
}

}  // namespace

ProcessTable::ProcessTable(const char* directory)
    : proc_(::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)), self_(::getpid()) {
  if (!proc_ && errno != ENOENT)
    throw os_error(fmt::format("cannot open {}", directory), errno);
  our_list_ = open_list(self_, self_);
  if (!our_list_ && errno != ENOENT && proc_)
    throw os_error(fmt::format("cannot open {}", directory), errno);
}

/// NSpid lists our PID in every namespace from the one /proc shows inwards: it is ours if there is exactly one, and it
/// is the one we know. A kernel without such namespaces, or one that only resembles Linux, has no such line.
bool ProcessTable::is_ours() const {
  const std::string status = read_file(proc_, Path{"self/status"});
  const std::string_view line = status.find("\nNSpid:") == std::string::npos ? "Pid" : "NSpid";
  return status.find(fmt::format("\n{}:\t{}\n", line, self_)) != std::string::npos;
}

pid_t ProcessTable::parent_of(pid_t pid) const { return read_stat(proc_, pid).parent; }

bool ProcessTable::descends(pid_t pid, pid_t ancestor) const {
  constexpr int most = 1000;  // processes that end and begin meanwhile could lead us round in circles
  for (int i = 0; i < most && pid > 0 && pid != ancestor; ++i) pid = parent_of(pid);
  return pid > 0 && pid == ancestor;
}

/// The kernel keeps a list of children for each thread that forked.
std::vector<pid_t> ProcessTable::children_of(pid_t parent) const {
  if (!our_list_)
    return scan_for_children_of(parent);
  std::vector<pid_t> children;
  const auto add = [&](const Fd& list) {
    Children reader{*this, list};
    while (const pid_t child = reader.next()) children.push_back(child);
  };
  if (parent == self_) {
    add(our_list_);
    return children;
  }
  for (const pid_t thread : threads_of(parent)) {
    if (const Fd list = open_list(parent, thread))
      add(list);
  }
  return children;
}

Fd ProcessTable::open_list(pid_t pid, pid_t thread) const {
  return open_below(proc_, Path{"{}/task/{}/children", pid, thread});
}

std::vector<pid_t> ProcessTable::threads_of(pid_t pid) const {
  struct stat tasks {};
  constexpr nlink_t links_of_one = 3;  // ".", its own name, and the thread
  if (::fstatat(proc_.get(), Path{"{}/task", pid}.text(), &tasks, 0) == 0 && tasks.st_nlink == links_of_one)
    return {pid};
  return numbered_entries(proc_, Path{"{}/task", pid});
}

std::vector<pid_t> ProcessTable::scan_for_children_of(pid_t parent) const {
  std::vector<std::pair<std::int64_t, pid_t>> by_age;  // PIDs do not tell the age: they start again from the lowest
  for (const pid_t candidate : numbered_entries(proc_, Path{"."})) {
    const Stat stat = read_stat(proc_, candidate);
    if (stat.parent == parent)
      by_age.emplace_back(stat.start, candidate);
  }
  std::sort(by_age.begin(), by_age.end());
  std::vector<pid_t> children;
  for (const auto& [start, child] : by_age) children.push_back(child);
  return children;
}

std::optional<std::vector<pid_t>> ProcessTable::members_of(pid_t group) const {
  const auto everybody = numbered_entries(proc_, Path{"."});
  if (everybody.empty())
    return std::nullopt;
  std::vector<pid_t> members;
  for (const pid_t pid : everybody) {
    const Stat stat = read_stat(proc_, pid);
    if (stat.group == group && !stat.is_dead())
      members.push_back(pid);
  }
  return members;
}

/// Whoever is still listed as a child may be dead: a zombie that a debugger holds stays there.
bool ProcessTable::is_dead(pid_t pid) const { return read_stat(proc_, pid).is_dead(); }

bool ProcessTable::is_traced(pid_t pid) const {
  return read_file(proc_, Path{"{}/status", pid}).find("\nTracerPid:\t0\n") == std::string::npos;
}

ProcessTable::Children::Children(const ProcessTable& table, const Fd& list) : table_(&table), list_(&list) {
  ::lseek(list ? list.get() : table.proc_.get(), 0, SEEK_SET);
}

pid_t ProcessTable::Children::next() {
  if (*list_)
    return next_number();
  while (const pid_t candidate = next_entry()) {
    if (read_stat(table_->proc_, candidate).parent == table_->self_)
      return candidate;
  }
  return 0;
}

bool ProcessTable::Children::refill() {
  const ssize_t count = *list_ ? ::read(list_->get(), buffer_.data(), buffer_.size())
                               : ::getdents64(table_->proc_.get(), buffer_.data(), buffer_.size());
  used_ = 0;
  filled_ = static_cast<std::size_t>(std::max(count, ssize_t{0}));
  return filled_ > 0;
}

/// Each number in the list is followed by a space.
pid_t ProcessTable::Children::next_number() {
  pid_t number = 0;
  while (used_ < filled_ || refill()) {
    const char c = buffer_[used_++];
    if (c >= '0' && c <= '9')
      number = number * 10 + (c - '0');
    else if (number > 0)
      return number;
  }
  return number;
}

/// The next numbered entry of /proc, as getdents64(2) returns them.
pid_t ProcessTable::Children::next_entry() {
  while (used_ < filled_ || refill()) {
    const char* entry = buffer_.data() + used_;
    std::uint16_t length = 0;
    std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
    used_ += length;
    if (const auto number = parse_number<pid_t>(entry + offsetof(dirent64, d_name), 1))
      return *number;
  }
  return 0;
}

}  // namespace rlock::run
