#include "format/kafka/compression.h"

#include <gtest/gtest.h>
#include <snappy.h>
#include <zstd.h>

#include <random>
#include <string>

#include "bytes/endian.h"
#include "bytes/slice.h"
#include "format/kafka/golden_vectors.h"
#include "format/kafka/xerial.h"
#include "format/kafka/zstd_frames.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

constexpr Codec all_codecs[] = {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};
constexpr Codec real_codecs[] = {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};
constexpr std::size_t header_size = 61;
constexpr std::size_t mib = 1024 * 1024;

Bytes payload_of(std::string_view hex) {
  const Bytes batch = from_hex(hex);
  return {batch.begin() + header_size, batch.end()};
}

Bytes noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Half of it repeats, so that every codec has both copies and literals to write.
Bytes mixed(std::size_t size) {
  Bytes bytes = noise(size / 2, 7);
  const std::string text = "all work and no play makes a dull log; ";
  while (bytes.size() < size) bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.resize(size);
  return bytes;
}

Bytes compressed(Codec codec, ByteView in) {
  auto out = compress(codec, default_level(codec), in);
  EXPECT_TRUE(out);
  return *out;
}

// Runs a stream to its end or error and counts what came out before.
struct Drained {
  std::size_t bytes = 0;
  std::size_t piece_max = 0;
  std::optional<Errc> error;
};
Drained drain(Codec codec, ByteView in, std::size_t output_max) {
  const Bytes exact(in.begin(), in.end());  // so that a read too far is seen
  Drained drained;
  const Result<void> done = decompress(codec, exact, output_max, [&](ByteView piece) {
    drained.bytes += piece.size();
    drained.piece_max = std::max(drained.piece_max, piece.size());
    return true;
  });
  if (!done) drained.error = done.error().code;
  return drained;
}

TEST(Compression, every_codec_gives_back_what_went_in) {
  for (const Codec codec : all_codecs) {
    for (const std::size_t size : {0UL, 1UL, 100UL, 32768UL, 32769UL, 65536UL, 3 * mib + 17}) {
      const Bytes plain = mixed(size);
      const Bytes packed = compressed(codec, plain);
      const auto again = decompress_all(codec, packed, size);
      ASSERT_TRUE(again) << to_string(codec) << size << again.error().to_string();
      EXPECT_EQ(*again, plain) << to_string(codec) << size;
    }
  }
}

TEST(Compression, incompressible_data_survive) {
  const Bytes plain = noise(200000, 3);
  for (const Codec codec : real_codecs) {
    EXPECT_EQ(decompress_all(codec, compressed(codec, plain), plain.size()).value(), plain);
  }
}

TEST(Compression, every_legal_level_works_and_others_are_refused) {
  const Bytes plain = mixed(5000);
  const auto check = [&](Codec codec, int first, int last) {
    for (int level = first; level <= last; ++level) {
      const auto packed = compress(codec, level, plain);
      ASSERT_TRUE(packed) << to_string(codec) << level;
      EXPECT_EQ(decompress_all(codec, *packed, plain.size()).value(), plain);
    }
    for (const int level : {first - 1, last + 1}) {
      if (codec == Codec::gzip && level == 0) continue;
      const auto refused = compress(codec, level, plain);
      ASSERT_FALSE(refused) << to_string(codec) << level;
      EXPECT_EQ(refused.error().code, Errc::invalid);
    }
  };
  check(Codec::gzip, 1, 9);
  check(Codec::lz4, 1, 17);
  EXPECT_TRUE(compress(Codec::gzip, -1, plain));
  EXPECT_FALSE(compress(Codec::gzip, 0, plain));
  EXPECT_FALSE(compress(Codec::zstd, 23, plain));
  EXPECT_TRUE(compress(Codec::zstd, 19, plain));
}

TEST(Compression, payloads_of_another_program_are_read) {
  const Bytes plain = payload_of(golden::plain);
  EXPECT_EQ(decompress_all(Codec::gzip, payload_of(golden::gzip), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::snappy, payload_of(golden::snappy), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::lz4, payload_of(golden::lz4), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::zstd, payload_of(golden::zstd), mib).value(), plain);
}

TEST(Compression, both_shapes_of_snappy_and_glued_streams_are_read) {
  const Bytes plain = payload_of(golden::plain);
  EXPECT_EQ(decompress_all(Codec::snappy, payload_of(golden::raw_snappy), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::snappy, payload_of(golden::xerial_glued), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::gzip, payload_of(golden::gzip_members), mib).value(), plain);
  EXPECT_EQ(decompress_all(Codec::lz4, payload_of(golden::lz4_linked), mib).value(), plain);
}

TEST(Compression, framed_snappy_is_written_big_endian_in_blocks_of_32_kib) {
  const Bytes packed = compressed(Codec::snappy, mixed(40000));
  const Bytes header = from_hex("82534e4150505900 00000001 00000001");
  ASSERT_GT(packed.size(), header.size() + 4);
  EXPECT_TRUE(std::equal(header.begin(), header.end(), packed.begin()));
  const auto size = load_big<std::int32_t>(packed.data() + 16);
  std::size_t uncompressed = 0;
  ASSERT_TRUE(snappy::GetUncompressedLength(reinterpret_cast<const char*>(packed.data() + 20),
                                            static_cast<std::size_t>(size), &uncompressed));
  EXPECT_EQ(uncompressed, 32768U);
}

TEST(Compression, lz4_frames_begin_and_end_as_kafka_writes_them) {
  for (const std::size_t size : {10UL, 70000UL, 5 * mib}) {
    const Bytes packed = compressed(Codec::lz4, mixed(size));
    EXPECT_EQ(Bytes(packed.begin(), packed.begin() + 7), from_hex("04224d18604082")) << size;
    EXPECT_EQ(Bytes(packed.end() - 4, packed.end()), from_hex("00000000")) << size;
  }
}

TEST(Compression, zstd_frames_carry_no_content_size) {
  const Bytes packed = compressed(Codec::zstd, mixed(5000));
  EXPECT_EQ(ZSTD_getFrameContentSize(packed.data(), packed.size()), ZSTD_CONTENTSIZE_UNKNOWN);
}

TEST(Compression, output_comes_in_pieces_of_bounded_size) {
  const Bytes plain = mixed(4 * mib);
  for (const Codec codec : real_codecs) {
    const Drained drained = drain(codec, compressed(codec, plain), plain.size());
    EXPECT_FALSE(drained.error) << to_string(codec);
    EXPECT_EQ(drained.bytes, plain.size()) << to_string(codec);
    EXPECT_LE(drained.piece_max, 64U * 1024) << to_string(codec);
  }
}

TEST(Compression, sink_may_stop_early) {
  const Bytes packed = compressed(Codec::gzip, mixed(mib));
  int pieces = 0;
  EXPECT_TRUE(decompress(Codec::gzip, packed, mib, [&pieces](ByteView) { return ++pieces < 2; }));
  EXPECT_EQ(pieces, 2);
}

TEST(Compression, limit_is_exact) {
  const Bytes plain = mixed(300000);
  for (const Codec codec : all_codecs) {
    const Bytes packed = compressed(codec, plain);
    EXPECT_FALSE(drain(codec, packed, plain.size()).error) << to_string(codec);
    EXPECT_EQ(drain(codec, packed, plain.size() - 1).error, Errc::too_large) << to_string(codec);
    EXPECT_EQ(drain(codec, packed, 0).error, Errc::too_large) << to_string(codec);
  }
}

TEST(Compression, every_truncation_is_an_error) {
  const Bytes plain = mixed(2000);
  for (const Codec codec : real_codecs) {
    const Bytes packed = compressed(codec, plain);
    for (std::size_t size = 0; size < packed.size(); ++size) {
      // A framed snappy stream that is cut between blocks is a shorter stream.
      if (codec == Codec::snappy && size == xerial_header_bytes) continue;
      EXPECT_TRUE(drain(codec, ByteView(packed).first(size), mib).error)
          << to_string(codec) << " " << size;
    }
  }
  const Bytes raw = payload_of(golden::raw_snappy);
  for (std::size_t size = 0; size < raw.size(); ++size) {
    EXPECT_TRUE(drain(Codec::snappy, ByteView(raw).first(size), mib).error) << size;
  }
}

TEST(Compression, bytes_behind_the_stream_are_an_error) {
  const Bytes plain = mixed(2000);
  for (const Codec codec : real_codecs) {
    Bytes packed = compressed(codec, plain);
    packed.insert(packed.end(), 20, 0x5a);
    EXPECT_EQ(drain(codec, packed, mib).error, Errc::corrupt) << to_string(codec);
  }
}

TEST(Compression, error_repeats_on_later_calls) {
  Decompressor stream(Codec::zstd, as_bytes("not a frame"), mib);
  EXPECT_FALSE(stream.next());
  EXPECT_FALSE(stream.next());
}

TEST(Compression, concatenated_zstd_frames_are_one_stream) {
  const Bytes plain = mixed(mib);
  Bytes packed = compressed(Codec::zstd, ByteView(plain).first(100));
  const Bytes rest = compressed(Codec::zstd, ByteView(plain).subspan(100));
  packed.insert(packed.end(), rest.begin(), rest.end());
  EXPECT_EQ(decompress_all(Codec::zstd, packed, plain.size()).value(), plain);
}

TEST(Compression, level_22_of_a_streaming_writer_needs_no_window_of_128_mib) {
  const Bytes plain = mixed(600000);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
  Bytes packed(ZSTD_compressBound(plain.size()));
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  ZSTD_inBuffer in{plain.data(), plain.size(), 0};
  ASSERT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush), 0U);  // size unknown
  ASSERT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0U);
  ZSTD_freeCCtx(context);
  packed.resize(out.pos);
  ASSERT_EQ(zstd_demand(packed).value().window_max, 128U * mib);
  EXPECT_EQ(decompress_all(Codec::zstd, packed, plain.size()).value(), plain);
  EXPECT_EQ(drain(Codec::zstd, packed, plain.size() - 1).error, Errc::too_large);
}

// 1 GiB of zeros in as few bytes as each form allows.
constexpr std::size_t bomb_bytes = 1024 * mib;

Bytes gzip_bomb() {
  const Bytes member = compressed(Codec::gzip, Bytes(16 * mib, 0));
  Bytes bomb;
  for (std::size_t i = 0; i < bomb_bytes / (16 * mib); ++i) {
    bomb.insert(bomb.end(), member.begin(), member.end());
  }
  return bomb;
}

Bytes lz4_bomb() {
  const Bytes one = compressed(Codec::lz4, Bytes(64 * 1024, 0));
  Bytes bomb(one.begin(), one.begin() + 7);
  for (std::size_t i = 0; i < bomb_bytes / (64 * 1024); ++i) {
    bomb.insert(bomb.end(), one.begin() + 7, one.end() - 4);
  }
  bomb.insert(bomb.end(), one.end() - 4, one.end());
  return bomb;
}

// `blocks` blocks that repeat one byte 128 KiB times, 4 bytes each.
Bytes zstd_bomb(std::size_t blocks, std::uint8_t window_descriptor) {
  Bytes bomb = from_hex("28b52ffd 00");
  bomb.push_back(window_descriptor);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::uint32_t head = (128U * 1024 << 3) | (1U << 1) | (i + 1 == blocks ? 1U : 0U);
    for (int shift = 0; shift < 24; shift += 8) {
      bomb.push_back(static_cast<std::uint8_t>(head >> shift));
    }
    bomb.push_back(0);
  }
  return bomb;
}

Bytes xerial_bomb() {
  const Bytes one = compressed(Codec::snappy, Bytes(32 * 1024, 0));
  Bytes bomb(one.begin(), one.begin() + 16);
  for (std::size_t i = 0; i < bomb_bytes / (32 * 1024); ++i) {
    bomb.insert(bomb.end(), one.begin() + 16, one.end());
  }
  return bomb;
}

TEST(Bomb, is_refused_after_work_bounded_by_the_limit) {
  const struct {
    Codec codec;
    Bytes bytes;
  } bombs[] = {
      {Codec::gzip, gzip_bomb()},
      {Codec::lz4, lz4_bomb()},
      {Codec::zstd, zstd_bomb(bomb_bytes / (128 * 1024), 0x58)},  // a window of 2 MiB
      {Codec::snappy, xerial_bomb()},
  };
  for (const auto& bomb : bombs) {
    const Drained drained = drain(bomb.codec, bomb.bytes, 4 * mib);
    EXPECT_EQ(drained.error, Errc::too_large) << to_string(bomb.codec);
    EXPECT_LE(drained.bytes, 4 * mib) << to_string(bomb.codec);
    EXPECT_LE(drained.piece_max, 64U * 1024) << to_string(bomb.codec);
  }
}

TEST(Bomb, raw_snappy_is_refused_by_its_claim) {
  Bytes raw(snappy::MaxCompressedLength(64 * mib));
  std::size_t size = 0;
  const Bytes zeros(64 * mib, 0);
  snappy::RawCompress(reinterpret_cast<const char*>(zeros.data()), zeros.size(),
                      reinterpret_cast<char*>(raw.data()), &size);
  raw.resize(size);
  const Drained drained = drain(Codec::snappy, raw, 4 * mib);
  EXPECT_EQ(drained.error, Errc::too_large);
  EXPECT_EQ(drained.bytes, 0U);
}

TEST(Bomb, snappy_claim_beyond_the_best_ratio_allocates_nothing) {
  const Bytes raw = from_hex("ffffffff0f 00 00");  // claims 4 GiB
  EXPECT_EQ(drain(Codec::snappy, raw, 8192 * mib).error, Errc::corrupt);
  Bytes framed(xerial_header.begin(), xerial_header.end());
  const Bytes block = from_hex("00000007 ffffffff0f 00 00");
  framed.insert(framed.end(), block.begin(), block.end());
  EXPECT_EQ(drain(Codec::snappy, framed, 8192 * mib).error, Errc::corrupt);
}

TEST(Bomb, framed_snappy_block_length_beyond_the_input_is_corrupt) {
  Bytes framed(xerial_header.begin(), xerial_header.end());
  const Bytes block = from_hex("7fffffff 00");
  framed.insert(framed.end(), block.begin(), block.end());
  EXPECT_EQ(drain(Codec::snappy, framed, mib).error, Errc::corrupt);
  store_big<std::int32_t>(framed.data() + 16, -5);
  EXPECT_EQ(drain(Codec::snappy, framed, mib).error, Errc::corrupt);
}

TEST(Bomb, zstd_window_out_of_proportion_is_refused) {
  // 2 GiB of window and an output that would need it.
  EXPECT_EQ(drain(Codec::zstd, zstd_bomb(1024, 0xa8), 8192 * mib).error, Errc::too_large);
}

TEST(Bomb, legal_batch_of_a_high_ratio_is_read) {
  const Bytes zeros(32 * mib, 0);
  for (const Codec codec : real_codecs) {
    const Drained drained = drain(codec, compressed(codec, zeros), zeros.size());
    EXPECT_FALSE(drained.error) << to_string(codec);
    EXPECT_EQ(drained.bytes, zeros.size()) << to_string(codec);
  }
}

TEST(OutputEstimate, is_never_below_what_an_honest_writer_packed) {
  for (const std::size_t size : {1UL, 100UL, 70000UL, mib}) {
    const Bytes plain = mixed(size);
    for (const Codec codec : all_codecs) {
      const std::uint64_t estimate = output_estimate(codec, compressed(codec, plain));
      EXPECT_GE(estimate, size) << to_string(codec);
      EXPECT_LE(estimate, size + 256 * 1024) << to_string(codec);
    }
  }
  EXPECT_EQ(output_estimate(Codec::snappy, payload_of(golden::raw_snappy)),
            payload_of(golden::plain).size());
}

TEST(OutputEstimate, malformed_input_gives_nothing_to_wait_for) {
  for (const Codec codec : real_codecs) EXPECT_EQ(output_estimate(codec, as_bytes("x")), 0U);
}

TEST(ZstdFrames, headers_that_do_not_chain_up_are_refused) {
  const Bytes packed = compressed(Codec::zstd, mixed(1000));
  ASSERT_TRUE(zstd_demand(packed));
  for (std::size_t size = 1; size < packed.size(); ++size) {
    EXPECT_FALSE(zstd_demand(ByteView(packed).first(size))) << size;
  }
}

TEST(CodecNames, are_kafkas) {
  EXPECT_EQ(parse_codec("uncompressed").value(), Codec::none);
  for (const Codec codec : all_codecs) {
    EXPECT_EQ(parse_codec(to_string(codec)).value(), codec);
    EXPECT_EQ(codec_of(static_cast<int>(codec)), codec);
  }
  EXPECT_FALSE(parse_codec("producer"));
  EXPECT_FALSE(parse_codec("GZIP"));
  EXPECT_FALSE(codec_of(5));
  EXPECT_FALSE(codec_of(7));
}

}  // namespace
}  // namespace polylog::format::kafka
