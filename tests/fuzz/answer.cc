// What a hostile Redis answers to a question for the lock, or sends to a waiter: read, or refused; shown as printable
// characters; and no lock is believed to be handed over in the future, or for long.
#include "lock/answer.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/escape.h"
#include "base/sha1.h"
#include "base/word.h"
#include "lock/wording.h"
#include "printable.h"
#include "reply_of.h"

namespace {

using namespace rlock;

void check_answer(std::string_view bytes) {
  const redis::Address server = redis::parse_address("redis://h");
  const auto answer = lock::read_answer({server, fuzz::reply_of(bytes)}, BootClock::now(), Milliseconds{30'000});
  if (const auto* busy = std::get_if<lock::Busy>(&answer);
      busy && !fuzz::is_printable_line(printable(describe(*busy, lock::exclusive))))
    __builtin_trap();
  if (const auto* foreign = std::get_if<lock::Foreign>(&answer);
      foreign && !fuzz::is_printable_line(printable(describe(*foreign))))
    __builtin_trap();
}

const lock::Token token = *lock::Token::parse("00112233445566778899aabbccddeeff");

/// The message with the proof that its sender knows the token, which no input would contain by chance.
std::string with_proof(std::string_view message) {
  std::string_view rest = message;
  take_word(rest);
  return fmt::format("{} {}", message, sha1_hex(fmt::format("{}:{}", token.text(), take_word(rest))));
}

void check_message(std::string_view text) {
  const lock::Asked asked{.sent = BootClock::now() - std::chrono::seconds{1}, .answered = "1795170479695"};
  const auto granted = lock::read_hand_over(text, asked, token);
  if (!granted)
    return;
  if (granted->sent > BootClock::now() || !granted->unconfirmed || *granted->unconfirmed > std::chrono::hours{24 * 7})
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  check_message(bytes);
  check_message(with_proof(bytes));
  try {
    check_answer(bytes);
  } catch (const Error&) {
    // Refused, as it should be.
  }
  return 0;
}
