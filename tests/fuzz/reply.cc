// What a hostile server may send: whole or in pieces, it is a reply or an Error, within the limits.
#include "redis/reply.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "redis/cluster.h"

namespace {

using namespace rlock;

std::size_t count(const redis::Reply& reply) {
  std::size_t all = reply.elements.size();
  for (const redis::Reply& element : reply.elements) all += count(element);
  return all;
}

void read(std::string_view bytes, std::size_t piece) {
  const redis::ReplyLimits limits;
  redis::ReplyReader reader{limits};
  const redis::Endpoint asked{.host = "h", .port = 1, .path = {}};
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (const auto reply = reader.next()) {
      if (count(*reply) > limits.elements || reply->text.size() > limits.bytes)
        __builtin_trap();
      (void)redis::parse_redirection(*reply, asked);
      (void)redis::parse_cluster_nodes(reply->text, asked, true);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  try {
    read(bytes.substr(1), 1 + data[0]);
  } catch (const Error&) {
    // As it should be.
  }
  return 0;
}
