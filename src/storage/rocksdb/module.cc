#include "storage/rocksdb/module.h"

#include "storage/rocksdb/index.h"

namespace polylog::storage {
namespace {

Result<std::unique_ptr<OrderedIndex>> open(fs::FileSystem& fs, const std::string& directory) {
  return open_rocksdb_index(fs, directory);
}

}  // namespace
}  // namespace polylog::storage

extern "C" __attribute__((visibility("default")))
const polylog::storage::IndexModule polylog_index_module;
const polylog::storage::IndexModule polylog_index_module{POLYLOG_BUILD, &polylog::storage::open};
