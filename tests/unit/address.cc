#include "redis/address.h"

#include "expect.h"
#include "redis/cluster.h"

namespace rlock::unit {
namespace {

using redis::Address;
using redis::parse_address;

void refuses(std::string_view url) {
  expect_failure([&] { return parse_address(url); }, ExitCode::usage, "a bad URL is a usage error", url);
}

void test_networks() {
  const Address plain = parse_address("redis://example.org");
  expect(plain.kind == Address::Kind::node && !plain.tls && plain.database == 0, "a URL has defaults");
  expect_same(redis::to_string(plain.endpoints.at(0)), "example.org:6379", "the port of Redis is 6379");
  const Address full = parse_address("rediss://me:s%20%2F@[::1]:7000/3");
  expect(full.tls.has_value() && full.database == 3, "rediss speaks TLS, the path is the database");
  expect_same(redis::to_string(full.endpoints.at(0)), "[::1]:7000", "an IPv6 address stands in brackets");
  expect(full.credentials.user == "me" && full.credentials.password == "s /", "user and password are decoded");
  expect_same(full.url, "rediss://me:***@[::1]:7000/3", "the password is masked");
  expect_same(full.bare_url, "rediss://me@[::1]:7000/3", "the password is left out for the environment");
  expect(parse_address("REDISS://h").tls.has_value(), "a scheme may be written in upper case");
  expect_same(parse_address("UNIX:///run/a@b:c@d").url, "UNIX:///run/a@b:c@d", "and so may that of a socket");
  expect_same(parse_address("redis://y?pass=x@h").bare_url, "redis://y?pass=x@h", "a user's '?' begins no parameters");
}

void test_others() {
  const Address socket = parse_address("unix:///run/a%20b.sock?db=2");
  expect_same(redis::to_string(socket.endpoints.at(0)), "/run/a b.sock", "a socket's path is decoded");
  expect_same(socket.database, 2, "a socket's database is a parameter");
  const Address sentinel = parse_address("redis-sentinel://a,b:5000/main/1");
  expect(sentinel.kind == Address::Kind::sentinel && sentinel.must_be_master, "sentinels name a master");
  expect_same(redis::to_string(sentinel.endpoints.at(0)), "a:26379", "the port of a sentinel is 26379");
  expect_same(redis::to_string(sentinel.endpoints.at(1)), "b:5000", "there may be several sentinels");
  expect(sentinel.master_name == "main" && sentinel.database == 1, "the master's name, then the database");
  const Address cluster = parse_address("rediss-cluster://a:1,b:2");
  expect(cluster.kind == Address::Kind::cluster && cluster.tls && cluster.endpoints.size() == 2, "a cluster has seeds");
  expect(parse_address("redis-cluster://a/1").database == 1, "a cluster may have databases, since Valkey 9");
}

void test_nodes() {
  const redis::Endpoint asked{.host = "10.0.0.1", .port = 7000, .path = {}};
  redis::Reply moved{.kind = redis::Reply::Kind::error, .text = "MOVED 3999 :7001", .elements = {}};
  for (const char* text : {"MOVED 3999 :7001", "ASK 3999 ?:7001"}) {
    moved.text = text;
    const auto target = redis::parse_redirection(moved, asked);
    expect(target && redis::to_string(*target) == "10.0.0.1:7001", "a redirection without a host is to the host asked");
  }
  const auto nodes = redis::parse_cluster_nodes(
      "a 10.0.0.2:7002@17002 master,fail - 0 0 1 connected 0-100\nb :7001@17001 myself,master - 0 0 1 connected "
      "101-200",
      asked,
      false);
  expect(nodes.size() == 2 && nodes[0].has_failed && nodes[0].is_master, "a master that has failed is told as such");
  expect(nodes.size() == 2 && !nodes[1].has_failed && nodes[1].endpoint.host == "10.0.0.1", "so is one that has not");
  const std::string_view named = "a 10.0.0.2:7002@17002,db2.example master - 0 0 1 connected 0-100";
  expect_same(redis::parse_cluster_nodes(named, asked, true).at(0).endpoint.host,
              "db2.example",
              "with TLS a node is called by its name, which its certificate has");
  expect_same(
      redis::parse_cluster_nodes(named, asked, false).at(0).endpoint.host, "10.0.0.2", "else by its address alone");
}

}  // namespace

void test_addresses() {
  test_nodes();
  test_networks();
  test_others();
  for (const char* url : {"",
                          "redis",
                          "redis:",
                          "redis://",
                          "http://a",
                          "redis://a:0",
                          "redis://a:65536",
                          "redis://a:x",
                          "redis://a:",
                          "redis://a/x",
                          "redis://a/-1",
                          "redis://a/1/2",
                          "redis://a?x=1",
                          "redis://a b",
                          "redis://a,b",
                          "redis://a:1,b:2/3",
                          "redis://a,redis://b",
                          "redis://a\n",
                          "redis://%zz",
                          "redis://[::1",
                          "redis://[::1]x",
                          "redis://::1",
                          "unix://",
                          "unix://relative",
                          "unix:///s?x=1",
                          "unix:///s?db=",
                          "redis-sentinel://a",
                          "redis-sentinel:///main",
                          "redis-cluster://a,,b"})
    refuses(url);
  const auto failure = failure_of([] { return parse_address("redis://me:s3cret@a:x"); });
  expect(failure && std::string_view{failure->what()}.find("s3cret") == std::string_view::npos,
         "an error does not show a password");
  expect_same(
      redis::mask_password("redis://u:p@ss/w@host"), "redis://u:***@host", "a password with @ is masked completely");
  expect_same(redis::mask_password("redis://u:s3@cret?pass=x@host"),
              "redis://u:***@host",
              "what looks like a parameter does not hide the end of the password");
}

}  // namespace rlock::unit
