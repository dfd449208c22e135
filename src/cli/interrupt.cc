#include "cli/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace polylog::cli {
namespace {

volatile std::sig_atomic_t caught = 0;

void note(int signal) {
  caught = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action{};
    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return caught != 0; }

}  // namespace polylog::cli
