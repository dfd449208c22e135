#include "storage/rocksdb/loader.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <string_view>

#include "storage/rocksdb/module.h"

namespace polylog::storage {
namespace {

// Where the running program is, links resolved; empty when the system does not say.
std::string program_folder() {
  char path[PATH_MAX];
  if (::realpath("/proc/self/exe", path) == nullptr) return {};
  const std::string_view whole(path);
  return std::string(whole.substr(0, whole.rfind('/')));
}

// Open for good: threads of RocksDB run in it until the process ends.
Result<const IndexModule*> load() {
  const std::string folder = program_folder();
  std::string why;
  for (const char* const below : {"/", "/../lib/polylog/"}) {
    const std::string file = folder + below + module_file;
    void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      // The first reason counts, unless it was only that there is no such file.
      const char* const reason = ::dlerror();
      if (why.empty() || why.find("No such file") != std::string::npos) why = reason;
      continue;
    }
    const auto* const module = static_cast<const IndexModule*>(::dlsym(handle, module_symbol));
    if (module != nullptr && std::string_view(module->build) == POLYLOG_BUILD) return module;
    return fail(Errc::unsupported, file + " is not of this build of polylog");
  }
  return fail(Errc::unsupported,
              std::string("topics in the segment layout need ") + module_file +
                  " beside the program or in ../lib/polylog/ from there: " + why);
}

}  // namespace

Result<std::unique_ptr<OrderedIndex>> load_rocksdb_index(fs::FileSystem& fs,
                                                         const std::string& directory) {
  static const Result<const IndexModule*> module = load();
  if (!module) return fail(module.error());
  return (*module)->open(fs, directory);
}

}  // namespace polylog::storage
