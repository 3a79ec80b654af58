#include "redis/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/signals.h"
#include "base/word.h"

namespace rlock::redis {
namespace {

constexpr const char* closed = "the server closed the connection";

/// Whether a certificate was refused because nobody whom we trust has signed it.
bool is_unknown_ca(long verified) {
  return verified == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || verified == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         verified == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         verified == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Whether certificates can be found in it by their hash, "5ad8a5d6.0". Not every system prepares its directory for
/// that.
bool is_hashed_directory(const std::string& path) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.size() == 10 && name[8] == '.' && name.find_first_not_of("0123456789abcdef") == 8)
      return true;
  }
  return false;
}

/// Whether one of the system's directories is hashed. SSL_CERT_DIR may name several, with colons between them.
bool has_hashed_directory() {
  const char* own = std::getenv("SSL_CERT_DIR");
  std::string_view directories = own != nullptr ? own : ::X509_get_default_cert_dir();
  while (!directories.empty()) {
    if (is_hashed_directory(std::string{take_word(directories, ':')}))
      return true;
  }
  return false;
}

/// The file with the system's authorities, wherever this system has it: a static program knows only the paths of the
/// system on which it was built.
const char* system_bundle() {
  for (const char* file : {::X509_get_default_cert_file(),
                           "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Alpine, Arch
                           "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora
                           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // newer Fedora
                           "/etc/ssl/ca-bundle.pem",                             // SUSE
                           "/etc/ssl/cert.pem"}) {                               // Alpine
    if (::access(file, R_OK) == 0)
      return file;
  }
  return ::X509_get_default_cert_file();
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> buffer{};
  return ::inet_pton(AF_INET, host.c_str(), buffer.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), buffer.data()) == 1;
}

/// The reason in words that help the user, else in OpenSSL's words, else `what`.
std::string reason_of(unsigned long error, const std::string& what) {
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return "the server does not speak TLS on this port";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the server wants a client certificate: give --cert and --tls-key";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the server does not know the authority that signed our --cert";
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return closed;
#endif
    default:
      break;
  }
  const char* reason = error != 0 ? ::ERR_reason_error_string(error) : nullptr;
  return reason != nullptr ? reason : what;
}

/// OpenSSL would ask on the terminal: there may be nobody there, and it would wait for longer than --redis-timeout.
int know_no_passphrase(char* /*buffer*/, int /*size*/, int /*for_writing*/, void* /*data*/) { return 0; }

/// OpenSSL asks for a certificate when the server wants one and none was given. There is none.
int note_request_for_certificate(SSL* session, X509** /*certificate*/, EVP_PKEY** /*key*/) {
  *static_cast<bool*>(SSL_get_app_data(session)) = true;
  return 0;
}

/// `needs_key`: the file should have held our private key.
[[noreturn]] void refuse_file(std::string_view option, const std::string& file, bool needs_key = false) {
  const unsigned long error = ::ERR_peek_last_error();
  errno = 0;
  std::ifstream text{file};  // OpenSSL's errors about a passphrase, or a key that is missing, differ between versions
  if (!text)
    throw Error{ExitCode::config, fmt::format("{} {}: {}", option, file, std::strerror(errno))};
  const std::string content{std::istreambuf_iterator<char>{text}, {}};
  const auto has = [&content](std::string_view words) { return content.find(words) != std::string::npos; };
  const char* reason = has("ENCRYPTED")
                           ? "it is encrypted; `openssl pkey -in FILE -out PLAIN` makes a key that can be used"
                       : needs_key && !has("PRIVATE KEY") ? "it holds no private key; name one with --tls-key"
                                                          : ::ERR_reason_error_string(error);
  throw Error{ExitCode::config, fmt::format("{} {}: {}", option, file, reason != nullptr ? reason : "cannot be used")};
}

/// Allows, of what this machine's policy allows, TLS 1.2 and later, and only ciphers by which the server shows
/// who it is, and whoever gets its key later cannot read what was recorded. With TLS 1.3 all are such.
void narrow(ssl_ctx_st* context) {
  if (SSL_CTX_get_min_proto_version(context) < TLS1_2_VERSION)
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  std::string ciphers;
  const auto* const allowed = ::SSL_CTX_get_ciphers(context);
  for (int i = 0; i < sk_SSL_CIPHER_num(allowed); ++i) {
    const SSL_CIPHER* const cipher = sk_SSL_CIPHER_value(allowed, i);
    const int exchange = ::SSL_CIPHER_get_kx_nid(cipher);
    const bool is_anonymous = ::SSL_CIPHER_get_auth_nid(cipher) == NID_auth_null;
    if (!is_anonymous && (exchange == NID_kx_ecdhe || exchange == NID_kx_dhe))
      ciphers += fmt::format("{}{}", ciphers.empty() ? "" : ":", ::SSL_CIPHER_get_name(cipher));
  }
  ::SSL_CTX_set_cipher_list(context, ciphers.c_str());
}

}  // namespace

void Tls::FreeContext::operator()(ssl_ctx_st* context) const { ::SSL_CTX_free(context); }
void Tls::FreeSession::operator()(ssl_st* session) const { ::SSL_free(session); }

Tls::Tls(const TlsOptions& options, const std::string& host, int socket)
    : name_(options.server_name.empty() ? host : options.server_name), verifies_(!options.insecure) {
  Signals::keep_failed_writes_quiet();  // OpenSSL writes with write(2), to which no flag can be given
  context_.reset(::SSL_CTX_new(::TLS_client_method()));
  if (!context_)
    fail("cannot be set up");
  SSL_CTX_clear_mode(context_.get(), SSL_MODE_AUTO_RETRY);  // a flood of records without data must not hold SSL_read
  narrow(context_.get());
  ::SSL_CTX_set_client_cert_cb(context_.get(), note_request_for_certificate);
  load_certificate(options);
  if (verifies_)
    load_authorities(options);
  session_.reset(::SSL_new(context_.get()));
  if (!session_ || ::SSL_set_fd(session_.get(), socket) != 1)
    fail("cannot be set up");
  SSL_set_app_data(session_.get(), &lacks_certificate_);
  if (verifies_)
    expect_name();
  if (!is_ip_address(name_)) {  // SNI is for names only
    ::SSL_ctrl(session_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name_.data());
  }
}

void Tls::load_certificate(const TlsOptions& options) {
  if (!options.certificate.empty() &&
      ::SSL_CTX_use_certificate_chain_file(context_.get(), options.certificate.c_str()) != 1) {
    refuse_file("--cert", options.certificate);
  }
  const std::string& key = options.key_file();
  if (key.empty())
    return;
  ::SSL_CTX_set_default_passwd_cb(context_.get(), know_no_passphrase);
  if (::SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_check_private_key(context_.get()) != 1) {
    refuse_file(options.key.empty() ? "--cert" : "--tls-key", key, true);
  }
}

void Tls::load_authorities(const TlsOptions& options) {
  ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (!options.ca.empty()) {
    const auto load = is_directory(options.ca) ? ::SSL_CTX_load_verify_dir : ::SSL_CTX_load_verify_file;
    if (load(context_.get(), options.ca.c_str()) != 1)
      refuse_file("--cacert", options.ca);
    return;
  }
  const bool hashed = has_hashed_directory();
  if (hashed)
    ::SSL_CTX_set_default_verify_dir(context_.get());  // it reads one small file; parsing the bundle takes 20 ms
  if (const char* file = std::getenv("SSL_CERT_FILE"))
    ::SSL_CTX_load_verify_file(context_.get(), file);
  else if (!hashed)
    ::SSL_CTX_load_verify_file(context_.get(), system_bundle());
}

void Tls::expect_name() {
  X509_VERIFY_PARAM* expected = ::SSL_get0_param(session_.get());
  ::X509_VERIFY_PARAM_set_hostflags(expected,
                                    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int accepted = is_ip_address(name_) ? ::X509_VERIFY_PARAM_set1_ip_asc(expected, name_.c_str())
                                            : ::X509_VERIFY_PARAM_set1_host(expected, name_.c_str(), name_.size());
  if (accepted != 1)
    fail("cannot verify the server's name " + name_);
}

bool Tls::handshake() {
  ::ERR_clear_error();
  const int result = ::SSL_connect(session_.get());
  return result == 1 || !must_wait(result);
}

std::size_t Tls::write(std::string_view bytes) {
  ::ERR_clear_error();
  const int count = ::SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (count > 0)
    return static_cast<std::size_t>(count);
  must_wait(count);
  return 0;
}

std::size_t Tls::read(std::span<char> into) {
  ::ERR_clear_error();
  const int count = ::SSL_read(session_.get(), into.data(), static_cast<int>(into.size()));
  if (count > 0) {
    lacks_certificate_ = false;
    return static_cast<std::size_t>(count);
  }
  must_wait(count);
  return 0;
}

/// True if the call would block; throws for every other failure.
bool Tls::must_wait(int result) {
  const int error_number = errno;
  switch (::SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_to_write_ = false;
      return true;
    case SSL_ERROR_WANT_WRITE:
      wants_to_write_ = true;
      return true;
    case SSL_ERROR_ZERO_RETURN:
      throw Error{ExitCode::unavailable, closed};
    case SSL_ERROR_SYSCALL:
      fail(error_number != 0 ? ::strerror(error_number) : closed);
    default:
      fail("handshake failed");
  }
}

void Tls::fail(const std::string& what) const {
  const long verified = verifies_ && session_ ? ::SSL_get_verify_result(session_.get()) : X509_V_OK;
  if (verified != X509_V_OK) {
    const bool is_other = verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH;
    throw Error{ExitCode::unavailable,
                fmt::format("TLS: the certificate of {} is refused: {}{}",
                            name_,
                            ::X509_verify_cert_error_string(verified),
                            is_unknown_ca(verified) ? "; name its CA with --cacert"
                            : is_other              ? "; name whom it is for with --tls-server-name"
                                                    : ""),
                true};
  }
  // A reset connection may lose the server's alert: then OpenSSL reports nothing, or a failed system call.
  const unsigned long error = ::ERR_peek_last_error();
  const bool hint = lacks_certificate_ && (error == 0 || ERR_GET_LIB(error) == ERR_LIB_SYS);
  throw Error{
      ExitCode::unavailable,
      fmt::format("TLS: {}{}", reason_of(error, what), hint ? "; the server wants a client certificate (--cert)" : "")};
}

}  // namespace rlock::redis
