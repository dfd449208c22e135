#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

// Stands in for libFuzzer where the compiler has none: feeds the target the empty input, every file
// of the corpus folders given, and a fixed number of deterministic mutations of each. A finding
// ends the process through the sanitizer or an assertion.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int mutations_per_input = 200;

void feed(const Bytes& input) {
  // An exact-size heap block, so that one byte too far is seen.
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Bytes mutate(Bytes input, std::mt19937& random) {
  const auto below = [&random](std::size_t end) { return random() % end; };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(random()));
      continue;
    }
    const std::size_t at = below(input.size());
    switch (below(5)) {
      case 0: input[at] = static_cast<std::uint8_t>(random()); break;
      case 1: input[at] = static_cast<std::uint8_t>(input[at] ^ (1U << below(8))); break;
      case 2: input[at] = (random() & 1) != 0 ? 0xff : 0; break;
      case 3: input.resize(at); break;
      default: {
        const std::size_t size = std::min<std::size_t>(1 + below(8), input.size() - at);
        const auto from = input.begin() + static_cast<std::ptrdiff_t>(at);
        const Bytes piece(from, from + static_cast<std::ptrdiff_t>(size));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Bytes> corpus{{}};
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::exists(argv[i])) continue;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      std::ifstream in(file, std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  std::mt19937 random(20240229);
  std::size_t runs = 0;
  for (const Bytes& input : corpus) {
    feed(input);
    for (int i = 0; i < mutations_per_input; ++i) feed(mutate(input, random));
    runs += 1 + mutations_per_input;
  }
  std::printf("%zu inputs of the corpus, %zu runs\n", corpus.size() - 1, runs);
  return 0;
}
