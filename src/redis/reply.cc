#include "redis/reply.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <new>

#include "redis/address.h"

namespace rlock::redis {
namespace {

ReplyLimits& left_of(const redisReadTask* task) { return *static_cast<ReplyLimits*>(task->privdata); }

/// Returns the place for a new reply in its parent array, or nullptr if that is too deep, upon which hiredis gives up.
Reply* place(const redisReadTask* task) {
  std::size_t depth = 0;
  for (const redisReadTask* t = task->parent; t != nullptr; t = t->parent) ++depth;
  if (depth > left_of(task).depth)
    return nullptr;
  if (task->parent == nullptr)
    return new (std::nothrow) Reply;
  return &static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
}

void* create_string(const redisReadTask* task, char* text, std::size_t length) {
  Reply* reply = place(task);
  if (reply == nullptr)
    return nullptr;
  reply->kind = task->type == REDIS_REPLY_ERROR ? Reply::Kind::error : Reply::Kind::text;
  reply->text.assign(text, length);
  return reply;
}

void* create_array(const redisReadTask* task, std::size_t elements) {
  if (task->type != REDIS_REPLY_ARRAY || elements > left_of(task).elements)
    return nullptr;
  Reply* reply = place(task);
  if (reply == nullptr)
    return nullptr;
  reply->kind = Reply::Kind::array;
  reply->elements.resize(elements);
  left_of(task).elements -= elements;
  return reply;
}

void* create_integer(const redisReadTask* task, long long value) {
  Reply* reply = place(task);
  if (reply == nullptr)
    return nullptr;
  reply->kind = Reply::Kind::integer;
  reply->integer = value;
  return reply;
}

void* create_nil(const redisReadTask* task) { return place(task); }

/// Only whole trees are freed: elements live inside their parents.
void free_reply(void* reply) { delete static_cast<Reply*>(reply); }

/// hiredis 0.14 counts elements with an int, 1.x with a size_t. 1.x also parses RESP3's doubles and booleans; those are
/// refused, since we never ask for RESP3.
template <typename Functions>
Functions make_functions() {
  Functions f{};
  f.createString = create_string;
  f.createArray = [](const redisReadTask* task, auto elements) -> void* {
    return create_array(task, static_cast<std::size_t>(elements));
  };
  f.createInteger = create_integer;
  f.createNil = create_nil;
  if constexpr (requires { f.createDouble; }) {
    f.createDouble = [](const redisReadTask*, double, char*, std::size_t) -> void* { return nullptr; };
    f.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
  }
  f.freeObject = free_reply;
  return f;
}

redisReplyObjectFunctions functions = make_functions<redisReplyObjectFunctions>();  // hiredis wants it non-const

using Texts = std::initializer_list<std::string_view>;

bool has_code(const Reply& reply, Texts codes) {
  return std::any_of(codes.begin(), codes.end(), [&](auto code) { return reply.is_error(code); });
}

bool says(std::string_view text, Texts words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != std::string::npos; });
}

/// Redis 5 reports a wrong password as a plain ERR, and a server with a password refuses a long command from an
/// unauthenticated client before it reads all of it.
bool refuses_us(const Reply& reply) {
  return has_code(reply, {"NOAUTH", "WRONGPASS", "DENIED"}) || lacks_permission(reply.text) ||
         says(reply.text, {"unauthenticated", "invalid password"}) || wants_no_password(reply);
}

/// Where Redis begins to say which line of which script failed, " script: SHA1, on @user_script:242.", which tells a
/// user nothing. Valkey 9 leaves the SHA1 out.
std::size_t find_script_line(std::string_view text) {
  constexpr std::string_view begin = " script: ";
  constexpr std::size_t digest = 40;
  const auto line = text.find("on @user_script");
  const auto at = text.rfind(begin, line);
  if (line == std::string_view::npos || at == std::string_view::npos)
    return std::string_view::npos;
  const auto between = line - at - begin.size();
  return between == 0 || between == digest + 2 ? at : std::string_view::npos;  // 2 for ", "
}

bool are_one_word(char a, char b) {
  return std::isalnum(static_cast<unsigned char>(a)) != 0 && std::isalnum(static_cast<unsigned char>(b)) != 0;
}

/// A server may repeat what it was told. A part of a longer word is left alone: it is the server's own, and to mask
/// that would tell what the secret is.
std::string without(std::string_view secret, std::string_view words) {
  std::string out;
  std::size_t copied = 0;
  for (auto at = words.find(secret); !secret.empty() && at != std::string_view::npos; at = words.find(secret, at + 1)) {
    const auto end = at + secret.size();
    const bool begins = at == 0 || !are_one_word(words[at - 1], secret.front());
    const bool ends = end == words.size() || !are_one_word(secret.back(), words[end]);
    if (at < copied || !begins || !ends)
      continue;
    out.append(words.substr(copied, at - copied)).append("***");
    copied = end;
  }
  return out.append(words.substr(copied));
}

/// Whether the error tells of a state of the server that ends by itself.
bool may_pass(const Reply& reply) {
  return has_code(reply,
                  {"LOADING",
                   "BUSY",
                   "OOM",
                   "TRYAGAIN",
                   "CLUSTERDOWN",
                   "MASTERDOWN",
                   "READONLY",
                   "MISCONF",
                   "NOREPLICAS",
                   "MOVED",
                   "ASK"}) ||
         says(reply.text, {"max number of clients"});
}

/// Our own functions refuse what exceeds a limit; hiredis takes that for exhausted memory, and quotes a first byte that
/// begins no reply. What speaks TLS answers plain text with an alert (RFC 8446, 5.1: a record of type 21).
std::string describe_fault(const redisReader& reader) {
  if (reader.err == REDIS_ERR_OOM)
    return "a reply that is far too large";
  return says(reader.errstr, {R"("\x15")"}) ? "an alert of TLS: is it rediss://?"
                                            : "something that is not a Redis reply: is it the right port?";
}

/// What to write instead of the URL of another kind of server; empty where it seems to be of the right kind.
std::string_view other_kind(std::string_view words) {
  if (!says(words, {"unknown command"}))
    return {};
  if (says(words, {"SENTINEL"}))
    return ": it is not a Sentinel; write redis://HOST:PORT";
  const bool may_be_sentinel = says(words, {"EVALSHA", "SCAN", "TIME"});
  return may_be_sentinel ? ": is it a Sentinel? Then write redis-sentinel://HOST:PORT/MASTER-NAME" : "";
}

}  // namespace

bool Reply::is_error(std::string_view code) const {
  if (!is_error())
    return false;
  const std::string_view words = error_words();
  return words.substr(0, words.find(' ')) == code;
}

std::string_view Reply::error_words() const {
  std::string_view words{text};
  const auto dash = words.find(": -");
  if (dash != std::string_view::npos && words.starts_with("ERR Error running script"))
    words.remove_prefix(dash + 3);
  return words;
}

void encode(const Command& command, std::string& out) {
  std::vector<const char*> words;
  std::vector<std::size_t> lengths;
  for (const std::string& word : command) {
    words.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto count = static_cast<long long>(
      redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), words.data(), lengths.data()));
  if (count < 0)
    throw std::bad_alloc{};
  const std::unique_ptr<char, decltype(&redisFreeCommand)> owner{bytes, redisFreeCommand};
  out.append(bytes, static_cast<std::size_t>(count));
}

void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader(ReplyLimits limits)
    : limits_(limits), left_(limits), reader_(redisReaderCreateWithFunctions(&functions)) {
  if (!reader_)
    throw std::bad_alloc{};
  reader_->privdata = &left_;
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::start_exchange() { left_ = limits_; }

void ReplyReader::feed(std::string_view bytes) {
  if (bytes.size() > left_.bytes)
    throw Error{ExitCode::unavailable, "sent a reply that is far too large", true};
  left_.bytes -= bytes.size();
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

std::optional<Reply> ReplyReader::next() {
  void* object = nullptr;
  if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
    throw Error{ExitCode::unavailable, "sent " + describe_fault(*reader_), true};
  }
  if (object == nullptr)
    return std::nullopt;
  const std::unique_ptr<Reply> reply{static_cast<Reply*>(object)};
  return std::move(*reply);
}

/// Inside a script a missing permission is reported as a plain ERR: in the second of these forms by Redis 7.0, in the
/// third since then.
bool lacks_permission(std::string_view words) {
  return says(words, {"NOPERM", "The user executing the script", "ACL failure in script"});
}

bool wants_no_password(const Reply& reply) {
  return reply.is_error() && says(reply.text, {"without any password configured", "no password is set"});
}

std::string shown_words(const Reply& reply) {
  constexpr std::size_t longest = 500;
  const std::string text = without(reply.secret, reply.error_words());
  if (says(text, {"running in protected mode"}))  // 600 characters follow, on four ways out
    return "Redis is in protected mode and refuses other machines (DENIED): set a password on the server, then use "
           "--password-file";
  if (wants_no_password(reply))
    return "the server has no password for its default user: leave the password out, or name another user";
  std::string words = text.substr(0, std::min({text.find("with args"), find_script_line(text), longest}));
  if (words.ends_with('?'))
    words.resize(words.rfind('.') + 1);  // "Are you sure your configuration is correct?" asks the wrong person
  while (words.ends_with(' ') || words.ends_with(',') || words.ends_with('.')) words.pop_back();
  return words;
}

Error refusal(const Reply& reply) {
  const ExitCode code = refuses_us(reply) ? ExitCode::no_permission : ExitCode::unavailable;
  const std::string words = shown_words(reply);
  if (reply.is_error("NOAUTH") || says(reply.text, {"unauthenticated"}))
    return {code,
            "a password is needed (NOAUTH): use --password-file (in a configuration file: password-file = FILE), or "
            "RLOCK_PASSWORD"};
  if (says(words, {"Could not find scripting engine"}))
    return {code, "this server has no Lua: install its Lua module, or load it", true};
  if (reply.is_error("READONLY"))
    return {code, "this is a replica, which takes no writes; name its master, or its sentinels by redis-sentinel://"};
  return {code, words + std::string{other_kind(words)}, !may_pass(reply)};
}

void check_reply(const Address& from, const Reply& reply) {
  if (reply.is_error())
    throw refusal(reply).about(from.url);
}

}  // namespace rlock::redis
