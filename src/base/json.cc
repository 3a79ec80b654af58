#include "base/json.h"

namespace rlock {

void JsonObject::append(std::string_view name, std::string_view json) {
  if (text_.size() > 1)
    text_ += ',';
  text_ += '"';
  text_ += name;  // a name of our own, in which nothing needs escaping
  text_ += "\":";
  text_ += json;
}

}  // namespace rlock
