#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clerk.h"
#include "redis.h"
#include "world.h"

namespace sim {

class Host;

/// One TCP connection. Bytes of one direction stay in order; nothing else is.
struct Wire {
  Machine* client = nullptr;
  Host* host = nullptr;
  Session session;
  bool client_open = true;  // the client has its descriptor
  bool is_connected = false;
  bool is_ended = false;     // the server has closed it; the client may still read what came before
  bool is_mute = false;      // nothing passes any more, and nobody is told
  int error = 0;             // for the client
  std::string inbox;         // for the client to read
  bool server_open = false;  // the server knows the connection
  std::string request;       // what the server has read and not yet understood
  Nanos up = 0, down = 0;    // when the last byte of each direction arrives
  Nanos sent = 0;            // when the server sends its last answer: WAIT waits before it answers
  Nanos gone = std::numeric_limits<Nanos>::max();  // when the server has reset it, and sends nothing more
  Nanos written = 0;                               // when what it wrote last reaches the replica
};

struct Weather {
  Nanos latency = 200 * micro;  // one way, at least
  Nanos jitter = 200 * micro;
  int storms = 0;  // percent of packets that take much longer
};

/// A machine with a Redis: it is up or down, frozen or slow, and has a wall clock of its own.
class Host {
 public:
  Host(World& world, std::string name, Random random, Clock clock, bool in_quorum);

  Redis redis;
  Nanos slowness = 0;  // what each answer takes longer

  const std::string& name() const { return name_; }
  void accept(Wire& wire);
  void receive(Wire& wire, const std::string& bytes);
  void forget(Wire& wire);

  /// The replies to a command, and what the clerk says to that.
  std::vector<Value> execute(Session& session, const Words& words);

  void freeze(bool frozen);
  /// Ends it, with all connections; what it has in memory is lost unless it was saved.
  void stop();
  void start(bool with_data);
  bool is_up() const { return up_; }
  /// From now on what is written reaches a replica too, up to `longest` later.
  void replicate(Nanos longest) { longest_lag_ = longest; }
  /// The replica takes the place of the server, with as much as has reached it.
  void fail_over();
  void step_clock(Nanos by) {
    clock_.offset += by;
    clerk_.doubts_times();
  }
  long commands() const { return commands_; }

 private:
  friend class Network;
  void work(Wire& wire);
  void answer(Wire& wire, const Words& words);
  void write_to_replica(Wire& wire);
  /// The reply to WAIT, and how long it takes.
  Nanos wait_for_replica(const Wire& wire, const Words& words, Value& reply);

  World& world_;
  Clerk clerk_;
  class Network* network_ = nullptr;
  std::string name_;
  Random random_;
  Clock clock_;
  Redis::Database saved_;
  Nanos longest_lag_ = 0;  // 0: there is no replica
  Redis::Database replica_;
  struct Write {
    Nanos arrives;  // at the replica
    Redis::Database data;
  };
  std::deque<Write> stream_;
  std::vector<Wire*> waiting_;  // while it is frozen
  std::vector<Wire*> wires_;
  bool up_ = true, frozen_ = false;
  long commands_ = 0;
  int next_session_ = 0;
};

/// The network between machines and hosts.
class Network {
 public:
  Network(World& world, Random random, Weather weather) : world_(world), random_(random), weather_(weather) {}

  Host& add_host(std::string name, Clock clock, bool in_quorum);
  std::vector<std::unique_ptr<Host>>& hosts() { return hosts_; }

  // For the kernel.
  Wire& connect(Machine& client, std::size_t host);
  std::size_t send(Wire& wire, std::string_view bytes);
  void close(Wire& wire);

  void answer(Wire& wire, const std::string& bytes, Nanos delay);
  /// Resets the connection; the client hears of it, and the server.
  void reset(Wire& wire);
  void cut(const Machine* client, const Host& host);
  /// As a router does that has forgotten their connections.
  void mute(const Machine* client, const Host& host);
  /// Nothing passes between them until then; what is sent meanwhile arrives afterwards.
  void part(const Machine* client, const Host& host, Nanos until);
  /// The machine is gone without a word to anybody, or its process alone, in which case the kernel closes.
  void lose(Machine& client, bool silently);

  /// From now on it is as good as it can be.
  void calm_down();
  const Weather& weather() const { return weather_; }

 private:
  Nanos passage(const Wire& wire);

  World& world_;
  Random random_;
  Weather weather_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::deque<Wire> wires_;
  struct Partition {
    const Machine* client;  // nullptr: all
    const Host* host;
    Nanos until;
  };
  std::vector<Partition> partitions_;
};

/// The network that system calls use; one at a time.
Network*& the_network();

}  // namespace sim
