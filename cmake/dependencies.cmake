# What we use from the system. Names to put after LINK:
#   fmt::fmt  spdlog::spdlog  CLI11::CLI11  tomlplusplus::tomlplusplus  Boost::headers  Boost::json
#   ISAL::isal  ZLIB::ZLIB  zstd::libzstd_shared  LZ4::lz4  Snappy::snappy  SQLite::SQLite3
#   OpenSSL::SSL  RocksDB::rocksdb  RE2::re2  Threads::Threads; in tests also rapidcheck and
#   benchmark::benchmark

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)
find_package(Snappy REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED)

# Libraries whose Debian packages bring no CMake files.
function(polylog_find_plain target library header)
  find_library(POLYLOG_${library}_LIBRARY ${library} REQUIRED)
  find_path(POLYLOG_${library}_INCLUDE ${header} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${POLYLOG_${library}_LIBRARY})
  if(NOT POLYLOG_${library}_INCLUDE STREQUAL "/usr/include")
    target_include_directories(${target} INTERFACE ${POLYLOG_${library}_INCLUDE})
  endif()
endfunction()
polylog_find_plain(ISAL::isal isal isa-l/crc.h)
polylog_find_plain(LZ4::lz4 lz4 lz4.h)
# Its package has CMake files, but they ask for what its static archive needs.
polylog_find_plain(RocksDB::rocksdb rocksdb rocksdb/db.h)
polylog_find_plain(RE2::re2 re2 re2/re2.h)

if(POLYLOG_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck QUIET)
  find_package(benchmark QUIET)
endif()
