#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "redis/reply.h"

namespace rlock::fuzz {

/// An array of the strings between the bytes 0xFF, as scripts answer.
inline redis::Reply reply_of(std::string_view bytes) {
  redis::Reply reply;
  reply.kind = redis::Reply::Kind::array;
  while (!bytes.empty()) {
    const auto end = std::min(bytes.find('\xFF'), bytes.size());
    reply.elements.push_back(
        {.kind = redis::Reply::Kind::text, .text = std::string{bytes.substr(0, end)}, .integer = 0, .elements = {}});
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return reply;
}

}  // namespace rlock::fuzz
