// A linked-in OpenSSL asks the processor for its features before main() begins. In a virtual machine, where each CPUID
// traps, that takes half as long as asking Redis for a lock, and few runs speak TLS. The linker (--wrap) redirects the
// call to this file, which ignores the first one; OpenSSL calls again when it is used.

extern "C" {

void __real_OPENSSL_cpuid_setup();
void __wrap_OPENSSL_cpuid_setup();

void __wrap_OPENSSL_cpuid_setup() {
  static bool too_early = true;
  if (!too_early)
    __real_OPENSSL_cpuid_setup();
  too_early = false;
}
}
