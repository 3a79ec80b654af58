#include "redis/reply.h"

#include <hiredis/hiredis.h>

#include <new>

#include "base/error.h"

namespace rlock::redis {
namespace {

ReplyLimits& left_of(const redisReadTask* task) { return *static_cast<ReplyLimits*>(task->privdata); }

/// Returns the place for a new reply in its parent array, or nullptr, at which hiredis gives up, if that is too deep.
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
    // Our own functions refuse what exceeds a limit; hiredis takes that for exhausted memory.
    const bool too_large = reader_->err == REDIS_ERR_OOM;
    throw Error{ExitCode::unavailable,
                too_large ? "sent a reply that is far too large"
                          : "sent something that is not a Redis reply; does it need rediss://?",
                true};
  }
  if (object == nullptr)
    return std::nullopt;
  const std::unique_ptr<Reply> reply{static_cast<Reply*>(object)};
  return std::move(*reply);
}

}  // namespace rlock::redis
