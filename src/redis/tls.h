#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "redis/address.h"

struct ssl_st;
struct ssl_ctx_st;

namespace rlock::redis {

/// TLS over a connected, non-blocking socket, which stays the caller's. The server's chain and name are verified
/// (RFC 9525: DNS name or IP address) unless the options say insecure.
class Tls {
 public:
  /// Throws Error{config} for a certificate, key or CA that cannot be used, Error{unavailable} if OpenSSL fails.
  Tls(const TlsOptions& options, const std::string& host, int socket);

  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Continues the handshake; true once it is complete. Throws Error{unavailable} that says what is wrong.
  bool handshake();
  /// How many bytes passed; 0 if it would block. Throws Error{unavailable} if the stream is broken or has ended.
  std::size_t write(std::string_view bytes);
  std::size_t read(std::span<char> into);
  /// Whether the last call that would have blocked waits to write rather than to read.
  bool wants_to_write() const { return wants_to_write_; }

 private:
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };
  struct FreeSession {
    void operator()(ssl_st* session) const;
  };

  void load_certificate(const TlsOptions& options);
  void load_authorities(const TlsOptions& options);
  void expect_name();
  bool must_wait(int result);
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;  // that the server must prove
  bool verifies_;
  bool lacks_certificate_ = false;  // the server asked for one, we have none, and nothing has come from it since
  std::unique_ptr<ssl_ctx_st, FreeContext> context_;
  std::unique_ptr<ssl_st, FreeSession> session_;
  bool wants_to_write_ = false;
};

}  // namespace rlock::redis
