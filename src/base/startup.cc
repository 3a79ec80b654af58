// What the libraries that are linked in do before main() begins, although a short run need not pay for it. The linker
// (--wrap) redirects the calls to this file.

extern "C" {

// OpenSSL asks the processor for its features. In a virtual machine, where each CPUID traps, that takes half as long as
// asking Redis for a lock, and few runs speak TLS. So the first call is ignored; OpenSSL calls again when it is used.

void __real_OPENSSL_cpuid_setup();
void __wrap_OPENSSL_cpuid_setup();

void __wrap_OPENSSL_cpuid_setup() {
  static bool too_early = true;
  if (!too_early)
    __real_OPENSSL_cpuid_setup();
  too_early = false;
}

// The start code of a static program registers its table of frames, which is not sorted: the first exception would then
// sort it, for 5 ms. Without that registration the unwinder searches the sorted table that the linker makes
// (--eh-frame-hdr).

void __wrap___register_frame_info(const void* frames, void* object);
void* __wrap___deregister_frame_info(const void* frames);

void __wrap___register_frame_info(const void* /*frames*/, void* /*object*/) {}
void* __wrap___deregister_frame_info(const void* /*frames*/) { return nullptr; }
}
