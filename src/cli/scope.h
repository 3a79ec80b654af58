#pragma once

#include "cli/settings.h"
#include "observe/listing.h"

namespace rlock::cli {

/// The locks and patterns that the settings name; all locks where they name none.
observe::Scope choose_scope(const Settings& settings);

}  // namespace rlock::cli
