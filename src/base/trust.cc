#include "base/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/escape.h"

namespace rlock {
namespace {

bool is_given_descriptor(std::string_view file) {
  return file == "/dev/stdin" || file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd/");
}

std::string our_name() { return ::geteuid() == 0 ? "root" : std::to_string(::geteuid()); }

/// There is nothing in it, whoever owns it: in a user namespace, nobody whom we know.
bool is_null_device(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3); }

constexpr std::string_view itself = "it";

/// `subject`: `itself`, or "its folder". In a sticky folder nobody can replace the files of others, but everybody can
/// add his own, such as an authority to a directory of them. Others may write to a terminal, but only its owner types
/// what is read from it.
void judge(const struct stat& info, std::string_view subject, const std::string& path, const std::string& shown) {
  const auto refuse = [&shown](const std::string& why) { throw Error{ExitCode::config, shown + ": " + why}; };
  if (is_null_device(info))
    return;
  const std::string word = shell_word(path);
  if (!is_trusted_owner(info.st_uid))
    refuse(fmt::format(
        "{} belongs to user {}; if it can be trusted: chown {} {}", subject, info.st_uid, our_name(), word));
  const bool is_safe_folder = subject != itself && (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_safe_folder && !S_ISCHR(info.st_mode))
    refuse(fmt::format("{} can be written by others; if it can be trusted: chmod go-w {}", subject, word));
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
}

void judge_folder(const std::filesystem::path& file, const std::string& shown) {
  const std::string folder = folder_of(file);
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0)
    judge(info, "its folder", folder, shown);
}

/// A link may lead to a folder that is less well guarded than its own, and from there to any other file.
void judge_links(std::filesystem::path file, const std::string& shown) {
  for (int links = 0; links <= most_links; ++links) {
    judge_folder(file, shown);
    const auto link = read_link(file);
    if (!link)
      return;
    if (!is_trusted_owner(link->owner))
      throw Error{ExitCode::config,
                  fmt::format("{0}: the link {1} belongs to user {2}; if it can be trusted: chown -h {3} {1}",
                              shown,
                              shell_word(file.native()),
                              link->owner,
                              our_name())};
    std::error_code error;  // dots are not removed from the text, since a folder before them may be a link
    file = std::filesystem::canonical(folder_of(link->target), error) / link->target.filename();
    if (error)
      return;
  }
}

}  // namespace

bool is_trusted_owner(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

std::optional<Link> read_link(const std::filesystem::path& file) {
  struct stat info {};
  std::error_code error;
  const auto target = std::filesystem::read_symlink(file, error);
  if (error || ::lstat(file.c_str(), &info) < 0)
    return std::nullopt;
  return Link{.target = file.parent_path() / target, .owner = info.st_uid};
}

void check_trusted(const std::string& file, const std::string& shown) {
  struct stat info {};
  if (is_given_descriptor(file) || ::stat(file.c_str(), &info) < 0)
    return;
  judge(info, itself, file, shown);
  if (!is_null_device(info))
    judge_links(file, shown);
}

Fd open_trusted(const std::string& file, const std::string& shown) {
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {  // a directory such as /tmp is not to be mended
    errno = EISDIR;
    return {};
  }
  check_trusted(file, shown);  // first, since opening a pipe that somebody has planted may block for ever
  Fd fd{::open(file.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC)};
  if (!fd || is_given_descriptor(file))
    return fd;
  if (::fstat(fd.get(), &info) < 0)
    return {};
  judge(info, itself, file, shown);  // again: whoever owns a folder further up may have exchanged it
  return fd;
}

}  // namespace rlock
