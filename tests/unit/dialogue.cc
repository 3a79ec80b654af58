#include "redis/dialogue.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using redis::Dialogue;

constexpr std::string_view subscribed = "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n";
constexpr std::string_view unsubscribed = "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n";

std::string message(std::string_view text) {
  return "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

std::string concat(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const auto part : parts) all += part;
  return all;
}

void make_it_listen(Dialogue& dialogue) {
  dialogue.listen_on("ch");
  std::string out;
  dialogue.ask({{"GET", "a"}}, out);
  dialogue.feed(concat({"$1\r\nA\r\n", subscribed}));
}

void test_a_question() {
  Dialogue dialogue{{}};
  dialogue.listen_on("ch");
  std::string out;
  dialogue.ask({{"GET", "a"}}, out);
  expect(out == "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n",
         "SUBSCRIBE follows the question",
         out);
  dialogue.feed("$1\r\nA\r\n");
  expect(!dialogue.is_answered(), "the answer is not complete before SUBSCRIBE is answered");
  dialogue.feed(concat({subscribed, message("early")}));
  expect(dialogue.is_answered() && dialogue.listens(), "the dialogue listens once SUBSCRIBE is answered");
  expect(dialogue.take_answers().at(0).text == "A", "the answer is the one to the question");
  expect(dialogue.take_messages() == std::vector<std::string>{"early"}, "what came with the answer is not lost");
}

void test_the_next_question() {
  Dialogue dialogue{{}};
  make_it_listen(dialogue);
  dialogue.feed(message("old"));
  std::string out;
  dialogue.listen_on({});
  dialogue.ask({{"GET", "b"}}, out);
  expect(out.starts_with("*2\r\n$11\r\nUNSUBSCRIBE\r\n$2\r\nch\r\n*2\r\n$3\r\nGET"),
         "UNSUBSCRIBE precedes the next question",
         out);
  expect(out.find("\r\nSUBSCRIBE") == std::string::npos, "no SUBSCRIBE follows a question without a channel", out);
  dialogue.feed(concat({message("late"), unsubscribed, "$1\r\nB\r\n"}));
  expect(dialogue.is_answered() && !dialogue.listens(), "the question is answered and nothing is listened to any more");
  expect(dialogue.take_answers().at(0).text == "B", "a message is not taken for the answer");
  expect(dialogue.take_messages().empty(), "messages from before the answer are dropped");
}

void test_dropped_answers() {
  Dialogue dialogue{{}};
  std::string out;
  dialogue.ask({{"GET", "a"}}, out);
  dialogue.drop_answers();
  dialogue.ask({{"GET", "b"}}, out);
  dialogue.feed("$1\r\nA\r\n");
  expect(!dialogue.is_answered(), "a late answer to the question before is dropped");
  dialogue.feed("$1\r\nB\r\n");
  expect(dialogue.is_answered() && dialogue.take_answers().at(0).text == "B",
         "the next answer belongs to the new question");
}

void test_refusals() {
  Dialogue dialogue{{}};
  dialogue.listen_on("ch");
  std::string out;
  dialogue.ask({{"GET", "a"}}, out);
  dialogue.feed("$1\r\nA\r\n-NOPERM no\r\n");
  expect(dialogue.is_answered() && !dialogue.listens(), "a refused SUBSCRIBE is noticed");
  expect(dialogue.refusal_to_listen() && dialogue.refusal_to_listen()->code() == ExitCode::no_permission,
         "the reason for a refused SUBSCRIBE is kept");
  Dialogue captive{{}};
  make_it_listen(captive);
  captive.ask({{"GET", "a"}}, out);
  captive.feed("-NOPERM no\r\n-ERR Can't execute 'get'\r\n");
  expect(captive.listens() && captive.refusal_to_listen().has_value(), "a refused UNSUBSCRIBE is noticed");
}

void test_intruders() {
  for (const std::string_view text : {"+OK\r\n", "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n"}) {
    Dialogue dialogue{{}};
    expect_failure(
        [&] {
          dialogue.feed(text);
          return 0;
        },
        ExitCode::unavailable,
        "a reply that nobody asked for is refused");
  }
  Dialogue dialogue{{}};
  make_it_listen(dialogue);
  for (int i = 0; i < 3000; ++i) {
    dialogue.feed(message(std::string(100, 'x')));
    if (i % 1000 == 0)
      (void)dialogue.take_messages();
  }
  expect(dialogue.take_messages().size() == 999, "the limits apply to each message by itself");
  try {
    dialogue.feed(std::string(70'000, 'x'));
    expect(false, "a message that is too large is refused");
  } catch (const Error& error) {
    expect(error.may_pass(), "anybody can send a large message, so that is no reason to give up");
  }
}

}  // namespace

void test_dialogues() {
  test_a_question();
  test_the_next_question();
  test_dropped_answers();
  test_refusals();
  test_intruders();
}

}  // namespace rlock::unit
