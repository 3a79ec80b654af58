#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/fd.h"

namespace rlock {

/// Which files may decide for us: those that nobody but root and our effective user could have written. It hides
/// owners, modes, sticky folders, links, and the order of the checks in which nobody can exchange the file meanwhile.

/// Whether this owner may decide for us.
bool is_trusted_owner(uid_t owner);

struct Link {
  std::filesystem::path target;  // in the folder of the link if it is a relative one
  uid_t owner;
};

/// Follows a symbolic link by one step; empty where there is none.
std::optional<Link> read_link(const std::filesystem::path& file);

constexpr int most_links = 40;  // in a row, as in the kernel

/// Throws Error{config} that begins with `shown` and says which chown or chmod helps, for a file or directory that
/// somebody else can write or replace. Accepts what cannot be examined, since opening it fails as well; /dev/null; and
/// the descriptors that our caller gave us, such as /dev/stdin. Of other devices only the owner counts.
void check_trusted(const std::string& file, const std::string& shown);

/// Opens a file for reading, after check_trusted(). If it returns no descriptor, errno says why.
Fd open_trusted(const std::string& file, const std::string& shown);

}  // namespace rlock
