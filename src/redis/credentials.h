#pragma once

#include <optional>
#include <string>

namespace rlock::redis {

/// Who we are to Redis. A password is a secret: it appears in no message.
struct Credentials {
  std::string user;  // empty: the default user
  std::optional<std::string> password;
  std::string password_file;  // read when connecting, each time anew: passwords are changed under us

  /// The first line of the file, else the password, else nothing. Throws Error{config} that names the file.
  std::optional<std::string> current_password() const;
};

}  // namespace rlock::redis
