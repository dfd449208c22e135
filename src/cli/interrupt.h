#pragma once

namespace polylog::cli {

// From here on SIGINT and SIGTERM end no process: they set a flag, and system calls that wait
// return with EINTR. For commands that have results to flush. The second signal ends the process.
void catch_interrupts();
bool interrupted();

}  // namespace polylog::cli
