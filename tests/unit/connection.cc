#include "redis/connection.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "expect.h"

namespace rlock::unit {
namespace {

using redis::Connection;

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

Deadline soon() { return BootClock::now() + std::chrono::seconds{30}; }

/// A server on a unix socket, which says what a test wants it to say, and a connection to it.
class Conversation {
 public:
  Conversation() : connection_(listen()) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation() {
    ::unlink(path_.c_str());
    ::rmdir(directory_.data());
  }

  Connection& connection() { return connection_; }

  /// Puts a question, and returns what the server reads.
  std::string ask(const std::string& key) {
    connection_.begin({{"GET", key}}, soon());
    expect(!connection_.advance(), "no answer is there before the server has spoken");
    if (!server_)
      server_ = Fd{::accept(listener_.get(), nullptr, nullptr)};
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(server_.get(), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

  void say(std::string_view text) {
    expect(::write(server_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "the server speaks");
  }

  void make_it_listen() {
    connection_.listen_on("ch");
    ask("a");
    say(concat({"$1\r\nA\r\n", subscribed}));
    expect(connection_.advance() && connection_.listens(), "the connection listens once SUBSCRIBE is answered");
  }

 private:
  redis::Address listen() {
    expect(::mkdtemp(directory_.data()) != nullptr, "there is a directory for the socket");
    path_ = std::string{directory_.data()} + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    listener_ = Fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const bool bound = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    expect(bound && ::listen(listener_.get(), 1) == 0, "the server listens on its socket");
    return redis::parse_address("unix://" + path_);
  }

  std::array<char, 32> directory_{"/tmp/rlock-unit-XXXXXX"};
  std::string path_;
  Fd listener_;
  Fd server_;
  Connection connection_;
};

void test_a_question() {
  Conversation talk;
  Connection& connection = talk.connection();
  connection.listen_on("ch");
  const std::string sent = talk.ask("a");
  expect(sent == "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n",
         "SUBSCRIBE follows the question",
         sent);
  talk.say("$1\r\nA\r\n");
  expect(!connection.advance(), "the answer is not complete before SUBSCRIBE is answered");
  talk.say(concat({subscribed, message("early")}));
  expect(connection.advance() && connection.listens(), "the connection listens once SUBSCRIBE is answered");
  expect(connection.take_replies().at(0).text == "A", "the answer is the one to the question");
  expect(connection.take_messages() == std::vector<std::string>{"early"}, "what came with the answer is not lost");
}

void test_the_next_question() {
  Conversation talk;
  Connection& connection = talk.connection();
  talk.make_it_listen();
  talk.say(message("old"));
  connection.listen_on({});
  const std::string sent = talk.ask("b");
  expect(sent.starts_with("*2\r\n$11\r\nUNSUBSCRIBE\r\n$2\r\nch\r\n*2\r\n$3\r\nGET"),
         "UNSUBSCRIBE precedes the next question",
         sent);
  expect(sent.find("\r\nSUBSCRIBE") == std::string::npos, "no SUBSCRIBE follows a question without a channel", sent);
  talk.say(concat({message("late"), unsubscribed, "$1\r\nB\r\n"}));
  expect(connection.advance() && !connection.listens(), "the question is answered and nothing is listened to any more");
  expect(connection.take_replies().at(0).text == "B", "a message is not taken for the answer");
  expect(connection.take_messages().empty(), "messages from before the answer are dropped");
}

void test_abandoned_questions() {
  Conversation talk;
  Connection& connection = talk.connection();
  talk.ask("a");
  connection.abandon();
  talk.ask("b");
  talk.say("$1\r\nA\r\n");
  expect(!connection.advance(), "a late answer to the question before is dropped");
  talk.say("$1\r\nB\r\n");
  expect(connection.advance() && connection.take_replies().at(0).text == "B",
         "the next answer belongs to the new question");
}

void test_refusals() {
  Conversation talk;
  Connection& connection = talk.connection();
  connection.listen_on("ch");
  talk.ask("a");
  talk.say("$1\r\nA\r\n-NOPERM no\r\n");
  expect(connection.advance() && !connection.listens(), "a refused SUBSCRIBE is noticed");
  const auto why = connection.refusal_to_listen();
  expect(why && why->code() == ExitCode::no_permission, "the reason for a refused SUBSCRIBE is kept");
  Conversation captive;
  captive.make_it_listen();
  captive.ask("b");
  captive.say(concat({"-NOPERM no\r\n-ERR Can't execute 'get'\r\n", subscribed}));
  expect(captive.connection().advance() && captive.connection().listens(), "a captive connection still listens");
  expect(captive.connection().refusal_to_listen().has_value(), "a refused UNSUBSCRIBE is noticed");
}

void test_intruders() {
  for (const std::string_view text : {"+OK\r\n", "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n"}) {
    Conversation talk;
    talk.ask("a");
    talk.say(concat({"$1\r\nA\r\n", text}));
    expect_failure(
        [&] { return talk.connection().advance(); }, ExitCode::unavailable, "a reply that nobody asked for is refused");
    expect(!talk.connection().is_open(), "the connection is closed after a failure");
  }
}

void test_floods() {
  Conversation talk;
  Connection& connection = talk.connection();
  talk.make_it_listen();
  std::size_t heard = 0;
  for (int i = 0; i < 3000; ++i) {
    talk.say(message(std::string(100, 'x')));
    if (i % 100 == 99) {
      connection.hear();
      heard += connection.take_messages().size();
    }
  }
  expect(heard == 3000, "the limits apply to each message by itself");
  talk.ask("b");
  talk.say(message(std::string(70'000, 'x')));
  const auto failure = failure_of([&] { return connection.advance() || connection.advance(); });
  expect(failure && failure->may_pass(), "anybody can send a large message, so that is no reason to give up");
}

}  // namespace

void test_connections() {
  test_a_question();
  test_the_next_question();
  test_abandoned_questions();
  test_refusals();
  test_intruders();
  test_floods();
}

}  // namespace rlock::unit
