#pragma once

#include <optional>
#include <string>

namespace rlock::redis {

/// Who we are to Redis. A password is a secret: it appears in no message.
struct Credentials {
  std::string user;  // empty: the default user
  std::optional<std::string> password;
  std::string password_file;  // read for each new connection, because passwords are changed while we run

  /// The first line of the file if one is named, else the password, else nothing. Throws Error{config} that names the
  /// file.
  std::optional<std::string> current_password() const;
};

}  // namespace rlock::redis
