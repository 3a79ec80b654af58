#include "redis/openssl.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace rlock::redis {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw Error{ExitCode::os, std::string{"TLS: OpenSSL has no "} + name};
}

OpenSsl load_library() {
  const std::string name = "libssl.so." + std::to_string(OPENSSL_VERSION_MAJOR);
  // Never closed: it registers handlers that run at exit.
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error{ExitCode::os, "TLS: cannot load OpenSSL: " + std::string{::dlerror()}};
  OpenSsl ssl{};
  find(library, "TLS_client_method", ssl.client_method);
  find(library, "SSL_CTX_new", ssl.context_new);
  find(library, "SSL_CTX_free", ssl.context_free);
  find(library, "SSL_CTX_ctrl", ssl.context_control);
  find(library, "SSL_CTX_set_verify", ssl.set_verify);
  find(library, "SSL_CTX_set_default_verify_dir", ssl.default_verify_dir);
  find(library, "SSL_CTX_set_default_verify_file", ssl.default_verify_file);
  find(library, "SSL_CTX_load_verify_file", ssl.load_verify_file);
  find(library, "SSL_CTX_load_verify_dir", ssl.load_verify_dir);
  find(library, "SSL_CTX_use_certificate_chain_file", ssl.use_certificate);
  find(library, "SSL_CTX_use_PrivateKey_file", ssl.use_private_key);
  find(library, "SSL_CTX_check_private_key", ssl.check_private_key);
  find(library, "SSL_new", ssl.session_new);
  find(library, "SSL_free", ssl.session_free);
  find(library, "SSL_set_fd", ssl.set_fd);
  find(library, "SSL_ctrl", ssl.session_control);
  find(library, "SSL_get0_param", ssl.parameters);
  find(library, "X509_VERIFY_PARAM_set1_host", ssl.expect_host);
  find(library, "X509_VERIFY_PARAM_set1_ip_asc", ssl.expect_ip);
  find(library, "SSL_connect", ssl.connect);
  find(library, "SSL_read", ssl.read);
  find(library, "SSL_write", ssl.write);
  find(library, "SSL_get_error", ssl.get_error);
  find(library, "SSL_get_verify_result", ssl.verify_result);
  find(library, "X509_verify_cert_error_string", ssl.verify_error_string);
  find(library, "X509_get_default_cert_dir", ssl.default_cert_dir);
  find(library, "ERR_peek_last_error", ssl.last_error);
  find(library, "ERR_reason_error_string", ssl.reason_string);
  find(library, "ERR_clear_error", ssl.clear_errors);
  return ssl;
}

}  // namespace

const OpenSsl& OpenSsl::load() {
  static const OpenSsl loaded = load_library();
  return loaded;
}

}  // namespace rlock::redis
