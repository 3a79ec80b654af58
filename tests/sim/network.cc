#include "network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace sim {
namespace {

constexpr Nanos keep_alive = 300 * second;  // until a server finds out that a client has vanished

/// Takes one command off a request, in RESP or, as far as it goes, nothing.
bool take_command(std::string& bytes, Words& words) {
  std::size_t at = 0;
  const auto number = [&](char mark, long& value) {
    const std::size_t end = bytes.find("\r\n", at);
    if (end == std::string::npos || bytes[at] != mark)
      return false;
    value = std::strtol(bytes.c_str() + at + 1, nullptr, 10);
    at = end + 2;
    return true;
  };
  long count = 0;
  if (!number('*', count))
    return false;
  words.clear();
  for (long i = 0; i < count; ++i) {
    long size = 0;
    if (!number('$', size) || bytes.size() < at + static_cast<std::size_t>(size) + 2)
      return false;
    words.push_back(bytes.substr(at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size) + 2;
  }
  bytes.erase(0, at);
  return true;
}

std::string describe(const Words& words) {
  std::string line = words[0];
  const bool script = words[0].starts_with("EVAL");
  for (std::size_t i = script ? 8 : 1; i < words.size(); ++i) line += " " + words[i].substr(0, 40);
  return line;
}

}  // namespace

Network*& the_network() {
  static Network* network = nullptr;
  return network;
}

// ---- Host

Host::Host(World& world, std::string name, Random random, Clock clock, bool in_quorum)
    : world_(world), clerk_(world, redis, name, in_quorum), name_(std::move(name)), random_(random), clock_(clock) {
  redis.clock = [this] { return clock_.read(world_.now()) / micro; };
  redis.push = [this](int session, const Value& value) {
    const auto wire = std::find_if(wires_.begin(), wires_.end(), [&](Wire* w) { return w->session.id == session; });
    if (wire == wires_.end())
      return;
    world_.tell(name_, fmt::format("-> {}: {}", (*wire)->client->name(), to_string(value)));
    std::string bytes;
    encode(value, bytes);
    network_->answer(**wire, bytes, 0);
  };
  redis.run_id = fmt::format("{:016x}{:016x}{:08x}", random_.next(), random_.next(), random_.next() >> 32U);
  redis.started = redis.clock() - 86400 * 1000000LL;  // yesterday
}

void Host::accept(Wire& wire) {
  wire.server_open = true;
  wire.session.id = ++next_session_;
  wires_.push_back(&wire);
}

void Host::forget(Wire& wire) {
  if (!wire.server_open)
    return;
  wire.server_open = false;
  redis.forget(wire.session);
  std::erase(wires_, &wire);
}

void Host::receive(Wire& wire, const std::string& bytes) {
  if (!wire.server_open)
    return;
  wire.request += bytes;
  if (frozen_)
    waiting_.push_back(&wire);
  else
    work(wire);
}

void Host::work(Wire& wire) {
  Words words;
  while (wire.server_open && take_command(wire.request, words)) answer(wire, words);
}

std::vector<Value> Host::execute(Session& session, const Words& words) {
  std::vector<Value> replies;
  clerk_.reads(words);
  redis.execute(session, words, replies);
  clerk_.audits(replies.empty() ? Value{} : replies[0]);
  return replies;
}

void Host::answer(Wire& wire, const Words& words) {
  ++commands_;
  std::vector<Value> replies = execute(wire.session, words);
  Nanos waits = 0;
  if (longest_lag_ > 0)
    words[0] == "WAIT" ? waits = wait_for_replica(wire, words, replies.at(0)) : (write_to_replica(wire), 0);
  std::string bytes;
  for (const Value& reply : replies) {
    encode(reply, bytes);
    world_.tell(
        name_,
        world_.tells() ? fmt::format("{}: {} => {}", wire.client->name(), describe(words), to_string(reply)) : "");
  }
  network_->answer(wire, bytes, waits + slowness + random_.between(20 * micro, 80 * micro));
}

/// In order: what is written later arrives later.
void Host::write_to_replica(Wire& wire) {
  const Nanos lag = random_.chance(97) ? random_.between(50 * micro, 2 * milli) : random_.between(0, longest_lag_);
  while (stream_.size() > 1 && stream_[0].arrives <= world_.now()) {
    replica_ = std::move(stream_[0].data);
    stream_.pop_front();
  }
  const Nanos before = stream_.empty() ? 0 : stream_.back().arrives;
  stream_.push_back({std::max(before, world_.now() + lag), redis.data});
  wire.written = stream_.back().arrives;
}

Nanos Host::wait_for_replica(const Wire& wire, const Words& words, Value& reply) {
  const Nanos limit = std::atoll(words.at(2).c_str()) * milli;
  const Nanos missing = std::max<Nanos>(0, wire.written - world_.now());
  reply = Value::of(missing <= limit ? 1LL : 0LL);
  return std::min(missing, limit);
}

void Host::fail_over() {
  if (!up_ || longest_lag_ == 0)
    return;
  stop();
  for (; !stream_.empty() && stream_[0].arrives <= world_.now(); stream_.pop_front())
    replica_ = std::move(stream_[0].data);
  stream_.clear();
  saved_ = replica_;
  const long long started = redis.started;
  start(true);
  redis.started = started;
  clerk_.doubts_tickets();
}

void Host::freeze(bool frozen) {
  frozen_ = frozen;
  if (frozen)
    return;
  for (Wire* wire : std::exchange(waiting_, {})) work(*wire);
}

void Host::stop() {
  up_ = false;
  frozen_ = false;
  waiting_.clear();
  while (!wires_.empty()) network_->reset(*wires_.back());
  saved_ = std::move(redis.data);
  redis.data.clear();
  redis.forget_scripts();
}

void Host::start(bool with_data) {
  up_ = true;
  redis.run_id = fmt::format("{:016x}{:016x}{:08x}", random_.next(), random_.next(), random_.next() >> 32U);
  redis.started = redis.clock();
  redis.data = with_data ? std::move(saved_) : Redis::Database{};
}

// ---- Network

Host& Network::add_host(std::string name, Clock clock, bool in_quorum) {
  hosts_.push_back(std::make_unique<Host>(world_, std::move(name), random_.fork(hosts_.size() + 77), clock, in_quorum));
  hosts_.back()->network_ = this;
  return *hosts_.back();
}

/// When what is sent now arrives, if nothing is ahead of it.
Nanos Network::passage(const Wire& wire) {
  Nanos leaves = world_.now();
  for (const Partition& p : partitions_) {
    if ((p.client == nullptr || p.client == wire.client) && p.host == wire.host)
      leaves = std::max(leaves, p.until);
  }
  Nanos takes = weather_.latency + random_.between(0, weather_.jitter);
  if (random_.chance(weather_.storms))
    takes += random_.between(0, random_.chance(20) ? 3 * second : 200 * milli);
  return leaves + takes;
}

Wire& Network::connect(Machine& client, std::size_t number) {
  Wire& wire = wires_.emplace_back();
  wire.client = &client;
  wire.host = hosts_.at(number).get();
  wire.up = passage(wire);
  world_.at(wire.up, [this, &wire] {
    const bool accepted = wire.host->is_up();
    if (accepted)
      wire.host->accept(wire);
    wire.down = passage(wire);
    world_.at(wire.down, [&wire, accepted] {
      wire.is_connected = accepted;
      if (!accepted)
        wire.error = ECONNREFUSED;
      wire.client->wake();
    });
  });
  return wire;
}

std::size_t Network::send(Wire& wire, std::string_view bytes) {
  if (bytes.size() > 1 && random_.chance(1))
    bytes = bytes.substr(0, 1 + static_cast<std::size_t>(random_.below(bytes.size())));  // the buffer is full
  if (wire.is_mute)
    return bytes.size();
  wire.up = std::max(wire.up, passage(wire));
  world_.at(wire.up, [&wire, sent = std::string{bytes}] { wire.host->receive(wire, sent); });
  return bytes.size();
}

/// What was sent before arrives before.
void Network::close(Wire& wire) {
  wire.client_open = false;
  wire.up = std::max(wire.up, wire.is_mute ? world_.now() + keep_alive : passage(wire));
  world_.at(wire.up, [&wire] { wire.host->forget(wire); });
}

/// In pieces, now and then.
void Network::answer(Wire& wire, const std::string& bytes, Nanos delay) {
  wire.sent = std::max(wire.sent, world_.now() + delay);
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t left = bytes.size() - at;
    const std::size_t size = random_.chance(5) ? 1 + static_cast<std::size_t>(random_.below(left)) : left;
    wire.down = std::max(wire.down, passage(wire) + delay);
    world_.at(wire.down, [&wire, sent = wire.sent, piece = bytes.substr(at, size)] {
      if (!wire.client_open || wire.error != 0 || sent > wire.gone || wire.is_mute)
        return;
      wire.inbox += piece;
      wire.client->wake();
    });
    at += size;
  }
}

void Network::reset(Wire& wire) {
  wire.gone = world_.now();
  wire.host->forget(wire);
  world_.at(passage(wire), [&wire] {
    if (wire.is_mute)
      return;
    wire.error = ECONNRESET;
    wire.inbox.clear();
    wire.client->wake();
  });
}

void Network::cut(const Machine* client, const Host& host) {
  for (Wire& wire : wires_) {
    if (wire.host == &host && (client == nullptr || wire.client == client) && wire.server_open && wire.client_open) {
      if (random_.chance(50)) {
        reset(wire);
        continue;
      }
      wire.error = ECONNRESET;  // the client hears of it first, and the server when it has read what was under way
      wire.client->wake();
      world_.at(wire.up + 1, [&wire] { wire.host->forget(wire); });
    }
  }
}

void Network::mute(const Machine* client, const Host& host) {
  for (Wire& wire : wires_) {
    if (wire.host == &host && (client == nullptr || wire.client == client))
      wire.is_mute = true;
  }
}

void Network::part(const Machine* client, const Host& host, Nanos until) {
  partitions_.push_back({client, &host, until});
}

void Network::lose(Machine& client, bool silently) {
  for (auto& [fd, wire] : client.descriptors) {
    if (!silently) {
      close(*wire);
      continue;
    }
    wire->client_open = false;
    world_.at(world_.now() + keep_alive, [wire = wire] { wire->host->forget(*wire); });
  }
  client.descriptors.clear();
}

void Network::calm_down() {
  partitions_.clear();
  weather_.storms = 0;
}

}  // namespace sim
