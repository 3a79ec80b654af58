#include "run/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/json.h"
#include "base/trust.h"
#include "base/word.h"

namespace rlock::run {
namespace {

/// In the order of the enumerators.
constexpr std::array<std::string_view, 10> outcome_names{
    "completed", "done", "conflict", "superseded", "lost", "evicted", "replaced", "timeout", "error", "interrupted"};

template <typename Value>
std::optional<Value> only_if(bool condition, Value value) {
  return condition ? std::optional<Value>{std::move(value)} : std::nullopt;
}

std::string format(const Result& result, const ReportOptions& options, Milliseconds waited, WallTime started_at) {
  const lock::Granted grant = result.grant.value_or(lock::Granted{});
  const bool granted = result.grant.has_value();
  return JsonObject{}
             .add("key", only_if(!options.key.empty(), options.key))
             .add("outcome", outcome_names.at(static_cast<std::size_t>(result.verdict.outcome)))
             .add("exit_status", result.verdict.exit_status)
             .add("command_status", result.verdict.command_status)
             .add("signal", result.verdict.command_signal)
             .add("fence", only_if(granted, grant.fence.value))
             .add("slot", only_if(granted && options.slots, grant.slot))
             .add("waited_ms", waited.count())
             .add("held_ms", only_if(result.held.has_value(), result.held.value_or(Milliseconds{0}).count()))
             .add("renewals", only_if(granted, result.renewals))
             .add("started_at", format_utc(started_at))
             .add("ended_at", format_utc(wall_now()))
             .add("message", only_if(!result.message.empty(), result.message))
             .text() +
         "\n";
}

/// The descriptor that a file name stands for, such as 1 for /dev/stdout.
std::optional<int> descriptor_of(std::string_view file) {
  if (file == "/dev/stdout")
    return STDOUT_FILENO;
  if (file == "/dev/stderr")
    return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (file.starts_with(folder))
      return parse_number<int>(file.substr(folder.size()), 0);
  }
  return std::nullopt;
}

/// Whether somebody else may have planted this file in a world-writable sticky directory such as /tmp.
bool is_planted(const struct stat& info, const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  struct stat around {};
  if (is_trusted_owner(info.st_uid) || ::stat(folder.c_str(), &around) < 0)
    return false;
  return (around.st_mode & S_ISVTX) != 0 && (around.st_mode & S_IWOTH) != 0 && info.st_uid != around.st_uid;
}

/// Resolves symbolic links, so that their target is replaced and not the link. Returns an empty name and sets errno for
/// a link that must not be followed: any of somebody else's, who could have us overwrite a file of ours.
std::string follow_links(std::string file) {
  for (int links = 0; links < most_links; ++links) {
    const auto link = descriptor_of(file) ? std::nullopt : read_link(file);
    if (!link)
      return file;
    errno = EACCES;
    if (!is_trusted_owner(link->owner))
      return "";
    file = link->target;
  }
  errno = ELOOP;
  return "";
}

/// Opens a pipe or device. O_NONBLOCK: a pipe that nobody reads fails at once and does not hang. Sets errno where
/// there is nothing to open, or only a file that was put in its place.
Fd open_device(const std::string& file) {
  Fd fd{::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) < 0)
    return {};
  errno = EACCES;
  return S_ISREG(info.st_mode) || is_planted(info, file) ? Fd{} : std::move(fd);
}

Fd create(const std::string& file) { return Fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)}; }

}  // namespace

Report::Report(ReportOptions options, const Log& log)
    : options_(std::move(options)), file_(follow_links(options_.file)), log_(&log), started_at_(wall_now()) {
  const auto refuse = [this] {
    throw Error{ExitCode::config, fmt::format("--report {}: {}", options_.file, ::strerror(errno))};
  };
  if (options_.file.empty())
    errno = ENOENT;
  if (file_.empty())
    refuse();
  struct stat info {};
  if (const auto descriptor = descriptor_of(file_)) {
    // The open file may be shared with other writers: a duplicate shares their offset, so that nothing is overwritten.
    device_ = Fd{::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)};
  } else if (::stat(file_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    device_ = open_device(file_);
  } else {
    const std::string trial = temporary();
    if (!create(trial))
      refuse();
    ::unlink(trial.c_str());
    return;
  }
  if (!device_)
    refuse();
}

/// A name beside the file, since rename(2) works only within a file system. The boot-clock time makes it unique even
/// when another container uses the same PID.
std::string Report::temporary() const {
  return fmt::format("{}.{}-{}", file_, ::getpid(), begun_.time_since_epoch().count());
}

void Report::write(const Result& result) const {
  // Without a grant all the time was spent waiting.
  const auto waited = result.grant ? result.waited : time_since(begun_);
  const std::string text = format(result, options_, waited, started_at_);
  try {
    device_ ? write_all(device_.get(), text, "write") : replace_file(text);
  } catch (const Error& error) {
    log_->error(fmt::format("cannot write the report {}: {}", file_, error.what()));
  }
}

void Report::write(const Error& error) const {
  Result result;
  result.verdict.exit_status = static_cast<int>(error.code());
  result.message = error.what();
  write(result);
}

/// Gives the new file the owner and mode of the one that it replaces, if there is one and nobody has planted it:
/// whoever did could rewrite the report. Only root can change the owner.
void Report::keep_owner_and_mode(const Fd& fd) const {
  constexpr mode_t permissions = 0777;
  struct stat old {};
  if (::lstat(file_.c_str(), &old) < 0 || !S_ISREG(old.st_mode) || is_planted(old, file_))
    return;
  [[maybe_unused]] const int unchanged = ::fchown(fd.get(), old.st_uid, old.st_gid);
  ::fchmod(fd.get(), old.st_mode & permissions);
}

/// For a file that is mounted by itself, as containers have them, and so cannot be replaced.
void Report::write_in_place(const std::string& text) const {
  const Fd fd{::open(file_.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)};
  if (!fd)
    throw os_error("open", errno);
  write_all(fd.get(), text, "write");
}

void Report::replace_file(const std::string& text) const {
  const std::string name = temporary();
  try {
    const Fd fd = create(name);
    if (!fd)
      throw os_error(name, errno);
    keep_owner_and_mode(fd);
    write_all(fd.get(), text, "write");
    if (::rename(name.c_str(), file_.c_str()) < 0) {
      if (errno != EBUSY)
        throw os_error("rename", errno);
      write_in_place(text);
      ::unlink(name.c_str());
    }
  } catch (const Error&) {
    ::unlink(name.c_str());
    throw;
  }
}

}  // namespace rlock::run
