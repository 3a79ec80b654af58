#include "observe/rehearsal.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "base/error.h"
#include "lock/lock.h"
#include "lock/request.h"
#include "lock/script_call.h"
#include "observe/facts.h"
#include "observe/history.h"
#include "redis/exchange.h"
#include "redis/refusal.h"

namespace rlock::observe {
namespace {

/// One rehearsal, with a holder and a waiter.
class Rehearsal {
 public:
  Rehearsal(Loop& loop, redis::Server& server, const std::string& prefix, Milliseconds timeout)
      : loop_(loop),
        server_(server),
        timeout_(timeout),
        name_(prefix, "rlock-check-" + lock::Level::random().text()),
        lock_({&server, 1}, name_, Milliseconds{0}) {}

  std::vector<std::string> play() {
    attempt("acquire", [&] { (void)lock_.acquire(loop_, holder_, {}, deadline()); });
    attempt("wait", [&] { wait(); });
    attempt("status", [&] { (void)inspect(loop_, server_, name_, deadline()); });
    attempt("subscribe", [&] { check_that_it_listens(); });
    attempt("list", [&] { call({"SCAN", "0", "MATCH", name_.key(), "COUNT", "1"}); });
    attempt("renew", [&] { (void)lock_.renew(loop_, holder_.token, holder_.ttl, deadline()); });
    attempt("settle", [&] { settle(); });
    attempt("release", [&] { (void)lock_.release_all(loop_, holder_.token, holder_.level, deadline()); });
    attempt("recall", [&] { (void)lock_.recall(loop_, holder_.token, holder_.level, deadline()); });
    attempt("log", [&] { log(); });
    attempt("history", [&] { call({"RPUSH", name_.keys().back(), ""}); });      // release goes on without it
    attempt("trim", [&] { call({"LTRIM", name_.keys().back(), "0", "-1"}); });  // release does it once the log is full
    attempt("cancel", [&] { lock_.cancel(loop_, waiter_, deadline()); });
    attempt("force", [&] { (void)lock_.look(loop_, deadline()); });
    attempt("remove", [&] { remove(); });
    return std::move(refusals_);
  }

 private:
  Deadline deadline() const { return BootClock::now() + timeout_; }

  void attempt(std::string_view what, const std::function<void()>& step) {
    if (stopped_)
      return;
    try {
      step();
    } catch (const Error& error) {
      stopped_ = error.code() != ExitCode::no_permission;  // any other failure would hit the later steps too
      const std::string_view words{error.what()};
      refusals_.push_back(fmt::format("{}: {}", what, words.substr(0, words.find("; rlock needs"))));
    }
  }

  void call(const redis::Command& command) {
    const auto replies = redis::call(loop_, server_, {command}, deadline());
    redis::check_reply(server_.address(), replies[0]);
  }

  void wait() {
    lock_.listen(waiter_.level);
    (void)lock_.acquire(loop_, waiter_, {.how = lock::Question::How::queue, .ticket = {}}, deadline());
  }

  void check_that_it_listens() const {
    if (const auto why = server_.refusal_to_listen())
      throw *why;
  }

  void settle() {
    (void)lock::call_script(loop_, server_, lock::settle_request(name_, holder_, {1}, false), deadline());
  }

  void log() { (void)lock::call_script(loop_, server_, history_request(name_, 1), deadline()); }

  void remove() {
    redis::Command del{"DEL"};
    for (const std::string& key : name_.keys()) del.push_back(key);
    call(del);
  }

  static lock::Claim make_claim() {
    return {.token = lock::Token::random(),
            .level = lock::Level::random(),
            .capacity = lock::exclusive,
            .ttl = Milliseconds{10'000},
            .owner = lock::describe_self({}, "rlock check", {})};
  }

  Loop& loop_;
  redis::Server& server_;
  Milliseconds timeout_;
  lock::LockName name_;
  lock::Lock lock_;
  lock::Claim holder_ = make_claim();
  lock::Claim waiter_ = make_claim();
  std::vector<std::string> refusals_;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::string> rehearse(Loop& loop, redis::Server& server, const std::string& prefix, Milliseconds timeout) {
  return Rehearsal{loop, server, prefix, timeout}.play();
}

}  // namespace rlock::observe
