#include "books.h"

#include <algorithm>
#include <charconv>

namespace sim {
namespace {

/// Takes words from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view first = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return first;
  }
  Reader& operator>>(long long& number) {
    const std::string_view text = word();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    fits_ = fits_ && !text.empty() && error == std::errc{} && end == text.data() + text.size() && number >= 0;
    return *this;
  }
  Reader& operator>>(std::string& text) {
    text = word();
    fits_ = fits_ && !text.empty();
    return *this;
  }
  std::string rest() const { return std::string{rest_}; }
  bool fits() const { return fits_; }

 private:
  std::string_view rest_;
  bool fits_ = true;
};

template <typename T>
const T* value_of(const Redis& redis, const std::string& key, Books& books) {
  const auto found = redis.data.find(key);
  if (found == redis.data.end() || (found->second.expires >= 0 && found->second.expires <= redis.now()))
    return nullptr;
  books.expiries[key] = found->second.expires;
  return std::get_if<T>(&found->second.value);
}

void read_lock(const Redis& redis, const std::string& key, Books& books) {
  const auto* hash = value_of<Redis::Hash>(redis, key, books);
  const auto is_theirs = [](const auto& pair) {
    return (pair.first == "rlock" && std::isdigit(pair.second[0]) == 0) || pair.second.starts_with(alien_record);
  };
  books.is_foreign =
      books.expiries.contains(key) && (hash == nullptr || std::any_of(hash->begin(), hash->end(), is_theirs));
  if (hash == nullptr || books.is_foreign)
    return;
  for (const auto& [field, text] : *hash) {
    if (field == "rlock") {
      books.capacity = std::atoll(text.c_str());
    } else if (field == "seen") {
      books.has_seats = true;
      books.seen = std::atoll(text.c_str());
    } else if (field == "slots") {
      books.slots = text;
    } else {
      Books::Record r;
      Reader reader{text};
      reader >> r.expires >> r.cools >> r.ttl >> r.hold >> r.fence >> r.slot >> r.acquired >> r.waited >> r.kept >>
          r.levels;
      r.tail = reader.rest();
      books.garbled += reader.fits() ? "" : text;
      books.records[field] = std::move(r);
    }
  }
}

void read_queue(const Redis& redis, const Words& keys, Books& books) {
  const auto* queue = value_of<Redis::Ranking>(redis, keys[1], books);
  const auto* waiters = value_of<Redis::Hash>(redis, keys[2], books);
  if ((queue != nullptr ? queue->size() : 0) != (waiters != nullptr ? waiters->size() : 0))
    books.garbled += "the queue and its waiters differ";
  if (queue == nullptr || waiters == nullptr)
    return;
  for (const auto& [score, token] : *queue) {
    const auto found =
        std::find_if(waiters->begin(), waiters->end(), [&](const auto& pair) { return pair.first == token; });
    Books::Waiter w;
    Reader reader{found != waiters->end() ? std::string_view{found->second} : std::string_view{}};
    reader >> w.capacity >> w.asked >> w.alive >> w.ticket >> w.level >> w.ttl >> w.hold >> w.born >> w.kept;
    w.tail = reader.rest();
    w.token = token, w.score = score;
    books.garbled += reader.fits() ? "" : "a waiter: " + (found != waiters->end() ? found->second : "none");
    books.queue.push_back(std::move(w));
  }
}

void read_memory(const Redis& redis, const std::string& key, Books& books) {
  const auto* hash = value_of<Redis::Hash>(redis, key, books);
  if (hash == nullptr)
    return;
  books.memory = {hash->begin(), hash->end()};
  if (const std::string& state = books.recall("state"); !state.empty()) {
    Reader reader{state};
    long long waited = 0;
    reader >> books.floor >> books.grants >> waited >> books.evicted >> books.lost >> books.failed;
    books.grants += waited;
    books.garbled += reader.fits() ? "" : state;
  }
  for (const std::string& line : split(books.recall("running"), '\n')) {
    Books::Running run;
    std::string token;
    Reader reader{line};
    reader >> token >> run.capacity >> run.fence >> run.acquired >> run.waited >> run.lasts;
    run.tail = reader.rest();
    books.garbled += reader.fits() && !books.running.contains(token) ? "" : line;
    books.running[token] = std::move(run);
  }
}

void read_history(const Redis& redis, const std::string& key, Books& books) {
  const auto* list = value_of<Redis::List>(redis, key, books);
  if (list == nullptr)
    return;
  for (const std::string& line : *list) {
    Books::Ending e;
    Reader reader{line};
    reader >> e.fence >> e.acquired >> e.ended >> e.waited >> e.capacity >> e.how;
    books.garbled += reader.fits() ? "" : line;
    books.history.push_back(std::move(e));
  }
}

template <typename List, typename Is>
auto find_in(const List& list, Is is) {
  const auto found = std::find_if(list.begin(), list.end(), is);
  return found != list.end() ? &*found : nullptr;
}

}  // namespace

Words split(std::string_view text, char at) {
  Words words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    if (end > 0)
      words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string extra(std::string_view tail, std::string_view name) {
  for (Reader reader{tail}; !reader.rest().empty();) {
    const std::string_view word = reader.word();
    if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
      return std::string{word.substr(name.size() + 1)};
  }
  return {};
}

Books Books::read(const Redis& redis, const Words& keys) {
  Books books;
  read_lock(redis, keys[0], books);
  read_queue(redis, keys, books);
  read_memory(redis, keys[3], books);
  read_history(redis, keys[4], books);
  return books;
}

Words Books::Record::level_names() const {
  Words names = split(levels, ',');
  for (std::string& name : names) name.resize(std::min(name.find(':'), name.size()));
  return names;
}

std::vector<long long> Books::Record::level_ends() const {
  std::vector<long long> ends;
  for (const std::string& level : split(levels, ',')) {
    if (const std::size_t colon = level.find(':'); colon != std::string::npos)
      ends.push_back(std::atoll(level.c_str() + colon + 1));
  }
  return ends;
}

const Books::Record* Books::record(const std::string& token) const {
  const auto found = records.find(token);
  return found != records.end() ? &found->second : nullptr;
}

const Books::Record* Books::holder(const std::string& token, long long now) const {
  const Record* r = record(token);
  return r != nullptr && r->expires > now ? r : nullptr;
}

const Books::Waiter* Books::waiter(const std::string& token) const {
  return find_in(queue, [&](const Waiter& w) { return w.token == token; });
}

long Books::rank(const std::string& token) const {
  const Waiter* w = waiter(token);
  return w != nullptr ? w - queue.data() : -1;
}

const Books::Ending* Books::ending(long long fence) const {
  return find_in(history, [&](const Ending& e) { return e.fence == fence; });
}

const std::string& Books::recall(std::string_view field) const {
  static const std::string none;
  const auto found = memory.find(field);
  return found != memory.end() ? found->second : none;
}

long long Books::held_back_until() const { return std::atoll(recall("hold").c_str()); }

std::vector<Books::Success> Books::successes() const {
  std::vector<Success> all;
  for (const std::string& line : split(recall("success"), '\n')) {
    Success s;
    Reader{line} >> s.granted >> s.ended;
    s.id = line.substr(line.rfind(' ') + 1);
    all.push_back(std::move(s));
  }
  return all;
}

std::vector<Books::Failure> Books::failures() const {
  std::vector<Failure> all;
  for (const std::string& line : split(recall("failures"), '\n')) {
    Failure f;
    Reader{line} >> f.fence >> f.acquired >> f.ended >> f.how >> f.id;
    all.push_back(std::move(f));
  }
  return all;
}

Books::Newest Books::newest() const {
  Newest newest;
  Reader{recall("newest")} >> newest.born >> newest.level >> newest.token;
  return newest;
}

long long Books::skipped() const {
  long long sum = 0;
  for (const std::string& word : split(recall("skipped"))) {
    if (!word.starts_with("last="))
      sum += std::atoll(word.c_str() + word.find('=') + 1);
  }
  return sum;
}

bool Books::says_the_same(const Books& other) const {
  return is_foreign == other.is_foreign && capacity == other.capacity && records == other.records &&
         queue == other.queue && memory == other.memory && history == other.history;
}

}  // namespace sim
