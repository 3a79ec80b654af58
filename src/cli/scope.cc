#include "cli/scope.h"

namespace rlock::cli {

observe::Scope choose_scope(const Settings& settings) {
  observe::Scope scope{.prefix = settings.prefix};
  for (const std::string& word : settings.keys) {
    if (observe::is_pattern(word)) {
      scope.patterns.push_back(word);
    } else {
      scope.names.emplace_back(settings.prefix, word, settings.key_origin);
    }
  }
  return scope;
}

}  // namespace rlock::cli
