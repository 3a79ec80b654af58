#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace rlock::redis {

/// The functions of OpenSSL that we use, found at run time. Macros of its headers are spelled out where they are used.
struct OpenSsl {
  /// Throws Error{os} where the library is not installed.
  static const OpenSsl& load();

  decltype(&::TLS_client_method) client_method;
  decltype(&::SSL_CTX_new) context_new;
  decltype(&::SSL_CTX_free) context_free;
  decltype(&::SSL_CTX_ctrl) context_control;
  decltype(&::SSL_CTX_set_verify) set_verify;
  decltype(&::SSL_CTX_set_default_verify_dir) default_verify_dir;
  decltype(&::SSL_CTX_set_default_verify_file) default_verify_file;
  decltype(&::SSL_CTX_load_verify_file) load_verify_file;
  decltype(&::SSL_CTX_load_verify_dir) load_verify_dir;
  decltype(&::SSL_CTX_use_certificate_chain_file) use_certificate;
  decltype(&::SSL_CTX_use_PrivateKey_file) use_private_key;
  decltype(&::SSL_CTX_check_private_key) check_private_key;
  decltype(&::SSL_new) session_new;
  decltype(&::SSL_free) session_free;
  decltype(&::SSL_set_fd) set_fd;
  decltype(&::SSL_ctrl) session_control;
  decltype(&::SSL_get0_param) parameters;
  decltype(&::X509_VERIFY_PARAM_set1_host) expect_host;
  decltype(&::X509_VERIFY_PARAM_set1_ip_asc) expect_ip;
  decltype(&::SSL_connect) connect;
  decltype(&::SSL_read) read;
  decltype(&::SSL_write) write;
  decltype(&::SSL_get_error) get_error;
  decltype(&::SSL_get_verify_result) verify_result;
  decltype(&::X509_verify_cert_error_string) verify_error_string;
  decltype(&::X509_get_default_cert_dir) default_cert_dir;
  decltype(&::ERR_peek_last_error) last_error;
  decltype(&::ERR_reason_error_string) reason_string;
  decltype(&::ERR_clear_error) clear_errors;
};

}  // namespace rlock::redis
