#include "base/json.h"

namespace rlock {

void JsonObject::append(std::string_view name, std::string_view json) {
  if (text_.size() > 1)
    text_ += ',';
  text_ += json_string(name);
  text_ += ':';
  text_ += json;
}

}  // namespace rlock
