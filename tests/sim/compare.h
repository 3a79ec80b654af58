#pragma once

#include <cstdint>
#include <string>

namespace sim {

/// Puts the same random commands to the model and to the redis-server at that socket, whose data it deletes. Prints
/// where the replies differ, and returns in how many. The server must keep small hashes in the order of insertion:
/// --hash-max-listpack-value 1000000 --hash-max-listpack-entries 1000000.
int compare(const std::string& socket, std::uint64_t seed, long commands);

}  // namespace sim
