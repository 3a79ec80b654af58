#include "base/json.h"

namespace rlock {

void JsonObject::append(std::string_view name, std::string_view json) {
  if (text_.size() > 1)
    text_ += ',';
  text_ += '"';
  text_ += name;  // which is ours: there is nothing to escape
  text_ += "\":";
  text_ += json;
}

}  // namespace rlock
