#pragma once

namespace rlock {

/// One function for each alternative of a variant, for std::visit: a missing one does not compile.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace rlock
