// What a hostile Redis gives for an owner: anything can be read, says the same when it is written again, and shows
// nothing to a terminal but printable characters.
#include "lock/owner.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/escape.h"
#include "lock/wording.h"
#include "printable.h"

namespace {

using namespace rlock;

bool contains_nul(const lock::Owner& owner) {
  return (owner.holder + owner.host + owner.user + owner.command + owner.note).find('\0') != std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const lock::Owner owner = lock::Owner::decode(text);
  if (!contains_nul(owner) && lock::Owner::decode(owner.encode()) != owner)
    __builtin_trap();
  const std::string shown = printable(lock::describe(owner) + owner.host + owner.user + owner.note);
  if (!fuzz::is_printable_line(shown) || printable(shown) != shown)
    __builtin_trap();
  return 0;
}
