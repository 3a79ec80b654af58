#include "base/sha1.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

namespace rlock {
namespace {

using State = std::array<std::uint32_t, 5>;
constexpr std::size_t block_size = 64;

/// The round's function of three words, with its constant added.
std::uint32_t mix(std::size_t round, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  if (round < 20)
    return ((b & c) | (~b & d)) + 0x5A827999;
  if (round < 40)
    return (b ^ c ^ d) + 0x6ED9EBA1;
  if (round < 60)
    return ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC;
  return (b ^ c ^ d) + 0xCA62C1D6;
}

void add_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < block_size; ++i) words[i / 4] = words[i / 4] << 8 | static_cast<std::uint8_t>(block[i]);
  for (std::size_t i = 16; i < words.size(); ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t next = std::rotl(a, 5) + mix(i, b, c, d) + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const State added{a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

/// Appends a one bit, zeros up to a whole block, and the length in bits.
std::string pad(std::string_view text) {
  std::string padded{text};
  padded += '\x80';
  while (padded.size() % block_size != block_size - 8) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>(static_cast<std::uint64_t>(text.size()) * 8 >> shift & 0xFF);
  return padded;
}

}  // namespace

std::string sha1_hex(std::string_view text) {
  State state{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::string padded = pad(text);
  for (std::size_t at = 0; at < padded.size(); at += block_size)
    add_block(state, std::string_view{padded}.substr(at, block_size));
  std::string hex;
  for (const std::uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace rlock
