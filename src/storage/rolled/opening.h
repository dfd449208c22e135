#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/rolled/log.h"

// What opening a store of rolled logs does whatever the layout.
namespace polylog::storage {

// Calls work(0) to work(count - 1), several at once on threads of its own: partitions don't depend
// on each other, and on a cold disk each of them waits for some reads.
void for_all_partitions(std::size_t count, std::size_t threads,
                        const std::function<void(std::size_t)>& work);

// Adds what one partition's recovery found.
void add_recovery(Recovery& all, const Recovery& one);

// Removes directories that are not wanted any more; what can't go is noted.
void remove_doomed(fs::FileSystem& fs, const std::vector<std::string>& paths, Recovery& report);

// One round for everything that recovery wrote into `directory`, before anything is served.
// `wrote`: it wrote more than indexes that were lost.
Result<void> sync_recovered(fs::FileSystem& fs, const std::string& directory,
                            const std::vector<std::shared_ptr<RolledLog>>& logs, bool wrote);

// Then the sidecar says what is there now, and the ballast is laid. On a full disk the old sidecar
// stays a lower bound, and nothing more is said in it.
void begin_sidecar(RolledContext& context, const Result<void>& rewritten, Recovery& report);

}  // namespace polylog::storage
