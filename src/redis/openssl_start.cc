// OpenSSL, where it is linked in, asks the processor what it can do before main() begins: in a virtual machine, where
// each CPUID is trapped, that takes half as long as asking Redis for a lock, and few starts speak TLS. The linker
// (--wrap) brings the question here. The first time it comes too early; OpenSSL asks again when it is used.

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
