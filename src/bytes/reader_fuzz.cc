#include "bytes/reader.h"

#include <cstddef>
#include <cstdint>

// Reads the input by a program taken from its own bytes and checks what every decoder relies on:
// a view lies inside the input, the position never passes its end, and failure is final.

namespace {

void step(polylog::ByteReader& reader, std::uint8_t what) {
  switch (what % 10) {
    case 0: reader.i8(); break;
    case 1: reader.i16(); break;
    case 2: reader.u32(); break;
    case 3: reader.little<std::int64_t>(); break;
    case 4: reader.varint(); break;
    case 5: reader.varlong(); break;
    case 6: reader.unsigned_varint(); break;
    case 7: reader.skip(what); break;
    case 8: {
      const std::int32_t claimed = reader.i32();
      const std::size_t before = reader.remaining();
      const std::size_t count = reader.count(claimed, 3);
      POLYLOG_ASSERT(count * 3 <= before);
      break;
    }
    default: {
      const std::int32_t size = reader.varint();
      const polylog::ByteView view = reader.bytes(static_cast<std::size_t>(size));
      POLYLOG_ASSERT(view.empty() || reader.ok());
      std::uint8_t sum = 0;
      for (const std::uint8_t byte : view) sum = static_cast<std::uint8_t>(sum ^ byte);
      volatile std::uint8_t touched = sum;
      static_cast<void>(touched);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  polylog::ByteReader reader(polylog::ByteView(data, size));
  bool failed = false;
  for (int i = 0; i < 64; ++i) {
    step(reader, reader.u8());
    POLYLOG_ASSERT(reader.position() <= size);
    POLYLOG_ASSERT(!failed || !reader.ok());
    POLYLOG_ASSERT(reader.ok() || reader.remaining() == 0);
    failed = !reader.ok();
  }
  return 0;
}
