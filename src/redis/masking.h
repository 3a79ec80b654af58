#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::redis {

/// The URL with any password in it replaced by "***"; works on malformed ones too.
std::string mask_password(std::string_view url);

/// Masks the values of parameters such as "?password=secret", which we refuse but other programs accept.
void mask_parameters(std::string& text);

/// Whether this is "user:secret" rather than "host:port": a space in the password has cut off the "@host".
bool looks_like_a_password(std::string_view host);

/// The URL without its password, for the environment of a command.
std::string strip_password(std::string_view url);

/// Overwrites the password of a URL in place: in our own arguments, which ps shows while we run.
void blot_password(std::span<char> url);

}  // namespace rlock::redis
