#include "cli/config.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using cli::Layer;
using cli::Subcommand;

std::vector<Layer> parse(std::string_view text, Subcommand subcommand = Subcommand::run) {
  return cli::parse_config(text, "f", subcommand);
}

cli::Settings read(std::string_view text, Subcommand subcommand = Subcommand::run) {
  return cli::merge(parse(text, subcommand));
}

void refuses(std::string_view text, std::string_view message) {
  const auto failure = failure_of([&] { return parse(text); });
  expect(failure && failure->code() == ExitCode::config, "a bad configuration is told apart from a bad usage", text);
  expect(failure && std::string_view{failure->what()}.starts_with(message),
         "file and line are named",
         failure ? failure->what() : text);
}

void test_format() {
  expect(parse("").at(0).empty() && parse("# a\n\n \t\r\n#").at(0).empty(), "comments and blank lines are ignored");
  expect_same(read("note=a = b # c").note, "a = b # c", "a value reaches to the end of its line");
  expect_same(read("  note \t=\t x \r\n").note, "x", "blanks around names and values do not count");
  expect_same(read("prefix =").prefix, "", "a value may be empty");
  expect_same(read("redis = redis://a\nredis = redis://b").redis.size(), 2UL, "there may be several servers");
  expect(read("nonblock = yes").nonblock && !read("nonblock = no").nonblock, "flags are yes or no");
  refuses("\n\ncolour = red", "f:3: unknown option 'colour'");
  refuses("config = x", "f:1: unknown option");
  refuses("ttl", "f:1: 'ttl' is neither");
  refuses("ttl = soon", "f:1: ttl: ");
  refuses("nonblock = true", "f:1: nonblock: ");
  refuses("ttl = 3\nttl = 4", "f:2: ttl is given twice");
  refuses("[walk]", "f:1: unknown section");
  refuses("[run", "f:1: unknown section");
  refuses("[renew]\nwait = 3", "f:2: wait is not an option of renew");
  refuses({"note = a\0b", 10}, "f: not a text file");
  refuses("redis redis://u:secret@h", "f:1: 'redis ...' is neither");
  refuses("redis://u:secret@h = x", "f:1: unknown option 'redis://u:***@h'");
  refuses("ttl = redis://u:secret@h", "f:1: ttl: 'redis://u:***@h' is not");
}

void test_sections() {
  constexpr std::string_view text = "ttl = 1\n[run]\nttl = 2\n[ acquire ]\nttl = 3\n";
  expect_same(read(text).ttl->count(), 2'000, "a section outranks the lines above it");
  expect_same(read(text, Subcommand::acquire).ttl->count(), 3'000, "a section is only for its own subcommand");
  expect_same(
      read(text, Subcommand::renew).ttl->count(), 1'000, "the lines above all sections are for every subcommand");
}

void test_precedence() {
  const auto merge = [](std::string_view weak, std::string_view strong) {
    auto layers = parse(weak);
    for (Layer& layer : parse(strong)) layers.push_back(std::move(layer));
    return cli::merge(layers);
  };
  expect_same(merge("ttl = 1", "ttl = 2").ttl->count(), 2'000, "the stronger source counts");
  expect_same(merge("redis = redis://a\nredis = redis://b", "redis = redis://c").redis.size(),
              1UL,
              "the stronger source's servers replace all others");
  expect(!merge("nonblock = yes", "wait = 5").nonblock, "--wait overrides a weaker --nonblock");
  expect(!merge("wait = 5", "nonblock = yes").wait, "--nonblock overrides a weaker --wait");
  expect(merge("wait = 5", "nonblock = no").wait.has_value(), "nonblock = no overrides nothing");
  expect(!merge("shared = yes", "slots = 3").shared, "--slots overrides a weaker --shared");
  expect(merge("quiet = yes", "verbose = yes").verbosity == Verbosity::verbose, "--verbose overrides a weaker --quiet");
}

}  // namespace

void test_configuration() {
  test_format();
  test_sections();
  test_precedence();
}

}  // namespace rlock::unit
