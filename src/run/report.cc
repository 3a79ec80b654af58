#include "run/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/json.h"

namespace rlock::run {
namespace {

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};

WallTime wall_now() { return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()); }

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed:
      return "completed";
    case Outcome::conflict:
      return "conflict";
    case Outcome::lost:
      return "lost";
    case Outcome::timeout:
      return "timeout";
    case Outcome::error:
      return "error";
    case Outcome::interrupted:
      return "interrupted";
  }
  return "";
}

template <typename Value>
std::optional<Value> only_if(bool condition, Value value) {
  return condition ? std::optional<Value>{std::move(value)} : std::nullopt;
}

std::string format(const Result& result, const ReportOptions& options, Milliseconds waited, WallTime started_at) {
  const lock::Granted grant = result.grant.value_or(lock::Granted{});
  const bool granted = result.grant.has_value();
  return JsonObject{}
             .add("key", only_if(!options.key.empty(), options.key))
             .add("outcome", outcome_name(result.verdict.outcome))
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

std::string follow_links(const std::string& file) {
  const std::unique_ptr<char, FreeMemory> real{::realpath(file.c_str(), nullptr)};
  return real ? std::string{real.get()} : file;
}

Fd create(const std::string& file) { return Fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)}; }

void write_all(const Fd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count < 0 && errno != EINTR)
      throw os_error("write", errno);
    if (count > 0)
      text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

Report::Report(ReportOptions options, const Log& log)
    : options_(std::move(options)), file_(follow_links(options_.file)), log_(&log), started_at_(wall_now()) {
  const auto refuse = [this] {
    throw Error{ExitCode::config, fmt::format("--report {}: {}", options_.file, ::strerror(errno))};
  };
  errno = ENOENT;
  if (file_.empty())
    refuse();
  struct stat info {};
  if (::stat(file_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    // Not waiting for somebody to read a pipe: nobody may come.
    device_ = Fd{::open(file_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
    if (!device_)
      refuse();
    return;
  }
  const std::string trial = temporary();
  if (!create(trial))
    refuse();
  ::unlink(trial.c_str());
}

/// Beside the file, since only there can it be renamed. Nobody else has this name: not in another container either.
std::string Report::temporary() const {
  return fmt::format("{}.{}-{}", file_, ::getpid(), begun_.time_since_epoch().count());
}

void Report::write(const Result& result) const {
  // Without a grant all the time went into asking for one.
  const auto waited =
      result.grant ? result.waited : std::chrono::duration_cast<Milliseconds>(BootClock::now() - begun_);
  const std::string text = format(result, options_, waited, started_at_);
  try {
    device_ ? write_all(device_, text) : replace_file(text);
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

void Report::replace_file(const std::string& text) const {
  const std::string name = temporary();
  try {
    const Fd fd = create(name);
    if (!fd)
      throw os_error(name, errno);
    write_all(fd, text);
    if (::rename(name.c_str(), file_.c_str()) < 0)
      throw os_error("rename", errno);
  } catch (const Error&) {
    ::unlink(name.c_str());
    throw;
  }
}

}  // namespace rlock::run
