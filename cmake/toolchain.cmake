# Compiler cache, linker, sanitizers: everything that concerns the tools and not our targets.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -D_GLIBCXX_ASSERTIONS")

find_program(POLYLOG_CCACHE ccache)
if(POLYLOG_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache needs to serve files that use a precompiled header; without
  # hashing the directory, different build folders share their hits.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${POLYLOG_CCACHE})
endif()

# mold for g++; clang-19 comes with its own lld.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(POLYLOG_MOLD mold)
  if(POLYLOG_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
else()
  find_program(POLYLOG_LLD NAMES ld.lld-19 ld.lld)
  if(POLYLOG_LLD)
    add_link_options(--ld-path=${POLYLOG_LLD})
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
else()
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

# Assertions name files as they lie in the tree, not on the machine that built them.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(POLYLOG_SANITIZE)
  add_compile_options(-fsanitize=${POLYLOG_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POLYLOG_SANITIZE})
  if(POLYLOG_SANITIZE MATCHES "undefined")
    # A finding must fail the test, not scroll by.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(POLYLOG_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "POLYLOG_FUZZ needs clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
