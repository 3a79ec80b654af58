#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/options.h"
#include "lock/lock.h"
#include "redis/server.h"

namespace rlock::cli {

/// Completes a failure of Redis with what the reader of the message needs to know: which lock, where the address came
/// from, and what was not done, such as "the command was not started". The key and this may be empty. Other failures
/// are left as they are.
Error with_context(const Error& error, const Settings& settings, std::string_view key, std::string_view undone);

/// The key that a failure is about; empty where there are several, or none.
std::string only_key(const Settings& settings);

/// Calls the action, and explains its failure.
template <typename Action>
auto explaining(const Settings& settings, std::string_view undone, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw with_context(error, settings, only_key(settings), undone);
  }
}

/// Whether what failed may be done all the same: a request that was sent is carried out when a frozen server thaws, and
/// of several servers a minority may have done it.
bool may_be_done(const lock::Lock& lock, const Error& error);

/// Calls an action on a lock, and explains its failure; `done` says that it may have succeeded all the same.
template <typename Action>
auto explaining(
    const Settings& settings, const lock::Lock& lock, std::string_view undone, std::string_view done, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw with_context(error, settings, lock.name().text(), may_be_done(lock, error) ? done : undone);
  }
}

/// Whether whoever shows something again and again goes on after this failure: the server may come back, and a password
/// that has been changed there may soon stand in our file too.
bool may_be_mended(const Error& error);

/// A lock as a command that is to be pasted names it, with what this command line said about the servers.
std::string lock_words(const Settings& settings, std::string_view key);

/// The command that makes a holder give the lock up. The fence makes sure that nobody else is hit.
std::string command_to_break(const Settings& settings, std::string_view key, lock::Fence fence);

/// What is said of a lock that is_unheard_of().
constexpr std::string_view unheard_of = "no run of it is known; check its name";

/// Says that the token does not hold the lock, and what is there instead: free, released, unheard of, or held by
/// somebody else. It asks the servers for that until `give_up`.
ExitCode say_not_held(lock::Lock& lock,
                      const lock::Token& token,
                      std::vector<redis::Server>& servers,
                      const Settings& settings,
                      Deadline give_up,
                      const Log& log);

}  // namespace rlock::cli
