#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "redis/address.h"
#include "redis/reply.h"

namespace rlock::redis {

/// The words of an error reply that may be shown: cut where they repeat the command's arguments, which may include a
/// password, and cut if they are long.
std::string shown_words(const Reply& reply);

/// An error reply as an Error in the server's own words: no_permission if the server refuses our user, else
/// unavailable, lasting or not.
Error refusal(const Reply& reply);

/// Throws that, with the server's URL, if the reply is an error.
void check_reply(const Address& from, const Reply& reply);

/// Whether these are the words of an ACL that forbids a command, key or channel, outside or inside a script.
bool lacks_permission(std::string_view words);

/// Whether a server answered AUTH by saying that it has no password.
bool wants_no_password(const Reply& reply);

}  // namespace rlock::redis
