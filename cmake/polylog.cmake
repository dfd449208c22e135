# polylog_library(<target> SOURCES a.cc ... DEPENDS polylog_x ... LINK ZLIB::ZLIB ...)
#   A static library of one module. DEPENDS and LINK reach whoever depends on it.
# polylog_test(<name> SOURCES x_test.cc ... DEPENDS polylog_x ... LINK ...
#              [LABELS unit ...] [TIMEOUT seconds] [ARGS ...] [ENVIRONMENT A=b ...] [SERIAL])
#   One GoogleTest binary, one ctest entry. Labels say which stage of ./dev test runs it: unit
#   (default), conformance, crash-sim and fuzz under sanitizers; product, interop and crash on the
#   release build; tidy last. The module's folder is added as a label.
# polylog_fuzz(<name> SOURCES x_fuzz.cc DEPENDS ... [CORPUS folder])
#   LLVMFuzzerTestOneInput. With POLYLOG_FUZZ a libFuzzer binary; otherwise a program that replays
#   the corpus and deterministic mutations of it. Label fuzz. The corpus is tests/fuzz/corpus/<name>
#   unless CORPUS names another folder.
# polylog_script_test(<name> COMMAND ... [LABELS ...] [TIMEOUT seconds] [ENVIRONMENT ...] [SERIAL])
#   A test that is a script.
#
# Every test finds POLYLOG_SOURCE_DIR, POLYLOG_BUILD_DIR and POLYLOG_BINARY (the built `polylog`) in
# its environment.
#
# polylog_broker, polylog_groups and polylog_server_* get Boost.Asio, compiled once in polylog_asio,
# with its precompiled header. Tests have precompiled headers of their own: GoogleTest, and Asio for
# those that depend on the targets above.

add_library(polylog_warnings INTERFACE)
target_compile_options(polylog_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A lone designated initialiser of an Error is how we write it; the other fields have defaults.
  target_compile_options(polylog_warnings INTERFACE -Wno-missing-designated-field-initializers)
else()
  # g++ 12 reports designated initialisers that rely on member defaults.
  target_compile_options(polylog_warnings INTERFACE -Wno-missing-field-initializers)
  # At -O2 g++ 12 finds uninitialised reads and overlaps inside std::string and tl::expected that
  # are not there; clang and the sanitizers look for the real ones.
  target_compile_options(polylog_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(POLYLOG_WERROR)
  target_compile_options(polylog_warnings INTERFACE -Werror)
endif()

# Leaves out sources that do not exist, with a warning, so that a module being written does not stop
# work on the others; with POLYLOG_WERROR they are an error.
function(polylog_existing out)
  set(found)
  foreach(source IN LISTS ARGN)
    if(IS_ABSOLUTE "${source}" OR EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      list(APPEND found ${source})
    elseif(POLYLOG_WERROR)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${source} does not exist")
    else()
      message(WARNING "${CMAKE_CURRENT_SOURCE_DIR}/${source} does not exist")
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Sets up what every target of ours shares. `uses_asio` adds Asio.
function(polylog_setup target uses_asio)
  target_link_libraries(${target} PRIVATE polylog_warnings)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  if(uses_asio)
    target_link_libraries(${target} PUBLIC polylog_asio)
  endif()
endfunction()

# Test code is sanitized too, but optimising it takes longer than running it. (A precompiled header
# holds for one level of optimisation only.)
function(polylog_optimise_test target)
  if(POLYLOG_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# polylog_test_headers(<name> <library> ... [HEADERS <h> ...]): the precompiled header that tests
# reuse from <name>; GoogleTest's besides those given.
function(polylog_test_headers name)
  cmake_parse_arguments(arg "" "" "HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  polylog_setup(${name} FALSE)
  polylog_optimise_test(${name})
  target_link_libraries(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <string> <vector>
                            ${arg_HEADERS})
endfunction()

function(polylog_uses_asio out)
  set(${out} FALSE PARENT_SCOPE)
  foreach(name IN LISTS ARGN)
    if(name MATCHES "^polylog_(broker|groups|server_.*)$")
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(polylog_library target)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "polylog_library(${target}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  polylog_existing(sources ${arg_SOURCES})
  if(NOT sources)
    return()
  endif()
  add_library(${target} STATIC ${sources})
  polylog_uses_asio(uses_asio ${target})
  polylog_setup(${target} ${uses_asio})
  if(uses_asio)
    target_precompile_headers(${target} REUSE_FROM polylog_asio)
  endif()
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} ${arg_LINK})
endfunction()

set(POLYLOG_TEST_LABELS "" CACHE STRING "Build only tests with one of these labels; empty: all")

# Whether a test with these labels is wanted.
function(polylog_wants_test out)
  set(${out} ${POLYLOG_TESTS} PARENT_SCOPE)
  if(POLYLOG_TESTS AND POLYLOG_TEST_LABELS)
    set(${out} FALSE PARENT_SCOPE)
    foreach(label IN LISTS ARGN)
      if(label IN_LIST POLYLOG_TEST_LABELS)
        set(${out} TRUE PARENT_SCOPE)
      endif()
    endforeach()
  endif()
endfunction()

function(polylog_finish_test name labels timeout serial environment)
  # ./dev test chooses by label; a test with an unknown one would never run.
  foreach(label IN LISTS labels)
    if(NOT label MATCHES "^(unit|conformance|crash-sim|crash|product|interop|tidy|fuzz)$")
      message(FATAL_ERROR "${name}: ./dev test knows no label ${label}")
    endif()
  endforeach()
  file(RELATIVE_PATH module ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(APPEND labels ${module})
  list(APPEND environment
       POLYLOG_BINARY=${CMAKE_BINARY_DIR}/polylog
       POLYLOG_SOURCE_DIR=${CMAKE_SOURCE_DIR}
       POLYLOG_BUILD_DIR=${CMAKE_BINARY_DIR})
  if(POLYLOG_SANITIZE MATCHES "undefined")
    list(APPEND environment UBSAN_OPTIONS=print_stacktrace=1)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
                       ENVIRONMENT "${environment}" RUN_SERIAL ${serial})
endfunction()

function(polylog_test name)
  cmake_parse_arguments(arg "SERIAL" "TIMEOUT" "SOURCES;DEPENDS;LINK;LABELS;ARGS;ENVIRONMENT"
                        ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "polylog_test(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  polylog_wants_test(wanted ${arg_LABELS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  polylog_existing(sources ${arg_SOURCES})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  polylog_uses_asio(uses_asio ${arg_DEPENDS})
  polylog_setup(${name} ${uses_asio})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ${arg_LINK})
  polylog_optimise_test(${name})
  if(POLYLOG_TESTS AND uses_asio)
    target_precompile_headers(${name} REUSE_FROM polylog_asio_tests)
  elseif(POLYLOG_TESTS)
    target_precompile_headers(${name} REUSE_FROM polylog_tests)
  endif()
  if(NOT wanted)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  target_link_libraries(${name} PRIVATE GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 ${arg_ARGS})
  polylog_finish_test(${name} "${arg_LABELS}" ${arg_TIMEOUT} ${arg_SERIAL} "${arg_ENVIRONMENT}")
endfunction()

function(polylog_script_test name)
  cmake_parse_arguments(arg "SERIAL" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT POLYLOG_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  polylog_finish_test(${name} "${arg_LABELS}" ${arg_TIMEOUT} ${arg_SERIAL} "${arg_ENVIRONMENT}")
endfunction()

set(POLYLOG_FUZZ_SECONDS 5 CACHE STRING "How long one fuzz target runs as a test")

function(polylog_fuzz name)
  polylog_wants_test(wanted fuzz)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;DEPENDS;LINK" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "polylog_fuzz(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(arg_CORPUS)
    get_filename_component(corpus ${arg_CORPUS} ABSOLUTE)
  else()
    set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  polylog_existing(sources ${arg_SOURCES})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  polylog_setup(${name} FALSE)
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ${arg_LINK})
  if(NOT wanted)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY POLYLOG_FUZZ_TARGETS ${name})
  if(POLYLOG_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # New finds go to the build folder; the corpus in the tree is only read.
    set(found ${CMAKE_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${found})
    set(folders ${found})
    if(EXISTS ${corpus})
      list(APPEND folders ${corpus})
    endif()
    add_test(NAME ${name}
             COMMAND ${name} -max_total_time=${POLYLOG_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=1024
                     -malloc_limit_mb=256 -verbosity=0 -print_final_stats=1
                     -artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/${name}- ${folders})
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${corpus})
  endif()
  math(EXPR timeout "${POLYLOG_FUZZ_SECONDS} + 120")
  polylog_finish_test(${name} "fuzz" ${timeout} FALSE "")
endfunction()
