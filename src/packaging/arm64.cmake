# Builds for 64-bit ARM on a Debian of another architecture: cmake -DCMAKE_TOOLCHAIN_FILE=src/packaging/arm64.cmake
# `tests/install-deps.sh build arm64` installs the compiler and the libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
