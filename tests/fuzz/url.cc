// Any text given as a URL: an address that can be used, or an Error; the password is in neither message nor bare URL.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "redis/address.h"

namespace {

using namespace rlock;

void check(const redis::Address& address) {
  if (address.endpoints.empty())
    __builtin_trap();
  for (const redis::Endpoint& endpoint : address.endpoints) {
    if (endpoint.host.empty() && endpoint.path.empty())
      __builtin_trap();
  }
  const redis::Address again = redis::parse_address(address.bare_url);
  if (again.endpoints != address.endpoints || again.credentials.password)
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view url{reinterpret_cast<const char*>(data), size};
  try {
    check(redis::parse_address(url));
  } catch (const Error&) {
    // As it should be.
  }
  // A password that cannot be mistaken is found nowhere, however broken the rest.
  const std::string secret = "redis://user:Pa55w0rd" + std::string{url} + "@host:1";
  if (redis::mask_password(secret).find("Pa55w0rd") != std::string::npos ||
      redis::strip_password(secret).find("Pa55w0rd") != std::string::npos)
    __builtin_trap();
  return 0;
}
