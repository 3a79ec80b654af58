#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "redis/reply.h"

namespace rlock::redis {

/// The words of an error reply that may be shown: cut where it repeats the command's arguments, a password among them,
/// and at some length.
std::string shown_words(const Reply& reply);

/// What an error reply means, in the server's own words: Error{no_permission} when it refuses who we are, else
/// Error{unavailable}, which may pass or not.
Error refusal(const Reply& reply);

/// Whether an error's words are those of an ACL that lacks a permission, outside or inside a script.
bool lacks_permission(std::string_view words);

/// Whether a server answered AUTH with "nobody needs a password here".
bool wants_no_password(const Reply& reply);

}  // namespace rlock::redis
