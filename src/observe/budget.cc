#include "observe/budget.h"

#include "base/error.h"

namespace rlock::observe {

void Budget::spend(std::size_t bytes) {
  if (bytes > left_) {
    throw Error{
        ExitCode::unavailable,
        server_.address().url + ": it sent more than 128 MB about its locks; name the locks, or narrow --prefix",
        true};
  }
  left_ -= bytes;
}

void Budget::spend(const redis::Reply& reply) {
  spend(sizeof(reply) + reply.text.size());
  for (const redis::Reply& element : reply.elements) spend(element);
}

}  // namespace rlock::observe
