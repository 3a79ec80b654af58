#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "base/escape.h"

namespace rlock {

/// Text that is JSON already: an object or an array to be put inside another one.
struct Json {
  std::string text;
};

inline std::string to_json(const Json& json) { return json.text; }
inline std::string to_json(std::string_view text) { return json_string(text); }
/// A template, because a plain overload for bool would accept `const char*` too.
template <std::integral Number>
std::string to_json(Number number) {
  if constexpr (std::same_as<Number, bool>) {
    return number ? "true" : "false";
  } else {
    return std::to_string(number);
  }
}
/// An empty optional becomes null.
template <typename Value>
std::string to_json(const std::optional<Value>& value) {
  return value ? to_json(*value) : "null";
}

/// A JSON object on one line, built member by member, so that each value stands beside its name.
///
///     JsonObject{}.add("key", name.text()).add("slot", slot).add("holders", json_array(holders, format)).text()
class JsonObject {
 public:
  template <typename Value>
  JsonObject& add(std::string_view name, const Value& value) {
    append(name, to_json(value));
    return *this;
  }

  std::string text() const { return text_ + "}"; }
  Json json() const { return {text()}; }

 private:
  void append(std::string_view name, std::string_view json);

  std::string text_ = "{";
};

/// A JSON array of the items, each turned into Json by `format`.
template <typename Items, typename Format>
Json json_array(const Items& items, Format format) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1)
      out += ',';
    out += to_json(format(item));
  }
  return {out + "]"};
}

/// What `format` makes of the value, or null where there is none.
template <typename Value, typename Format>
Json json_or_null(const std::optional<Value>& value, Format format) {
  return value ? format(*value) : Json{"null"};
}

}  // namespace rlock
