#pragma once

namespace rlock {

/// Ends the process by SIGABRT, with one line on stderr that says where and what, unless `holds`. States an invariant
/// of ours, never anything about what comes from outside; it is on in release builds, and allocates nothing.
void always(bool holds, const char* invariant, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace rlock
