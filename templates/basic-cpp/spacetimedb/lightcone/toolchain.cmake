# clang for WebAssembly, with the C++ library that Debian builds for it. `spacetime build` passes this file to CMake; by hand:
# cmake -DCMAKE_TOOLCHAIN_FILE=lightcone/toolchain.cmake -DCMAKE_BUILD_TYPE=Release -B build && cmake --build build
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
# A program without `main` cannot be linked as a test.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER_WORKS ON)
# There are neither exceptions nor threads.
set(CMAKE_CXX_FLAGS_INIT "-fno-exceptions -fno-rtti -fno-threadsafe-statics")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# The host calls exports; there is no `main`.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostartfiles -Wl,--no-entry -Wl,--gc-sections -Wl,-z,stack-size=1048576")
