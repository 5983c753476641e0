# A toolchain file: cmake -DCMAKE_TOOLCHAIN_FILE=…/sdk/c/wasm32.cmake makes every executable a
# creature. It is for both C and C++.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # there is no main function

find_program(CMAKE_C_COMPILER NAMES clang-14 clang)
find_program(CMAKE_CXX_COMPILER NAMES clang++-14 clang++)
find_program(TERRARIUM_WASM_LD NAMES wasm-ld-14 wasm-ld)
foreach(tool CMAKE_C_COMPILER CMAKE_CXX_COMPILER TERRARIUM_WASM_LD)
  if(NOT ${tool})
    message(FATAL_ERROR "clang or wasm-ld is missing (${tool}). Debian: apt-get install clang lld")
  endif()
endforeach()
set(CMAKE_C_COMPILER_TARGET wasm32)
set(CMAKE_CXX_COMPILER_TARGET wasm32)
set(CMAKE_C_FLAGS_INIT "-Os -ffreestanding -mbulk-memory")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fno-exceptions -fno-rtti")

# The linker is called directly: clang would also run a wasm-opt that it finds.
set(CMAKE_EXE_LINKER_FLAGS_INIT "--no-entry --gc-sections --strip-all --compress-relocations --stack-first -z stack-size=16384")
set(CMAKE_C_LINK_EXECUTABLE "\"${TERRARIUM_WASM_LD}\" <LINK_FLAGS> <OBJECTS> <LINK_LIBRARIES> -o <TARGET>")
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_C_LINK_EXECUTABLE}")
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .wasm)
