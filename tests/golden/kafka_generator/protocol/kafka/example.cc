// Generated from Example.json; do not edit.
#include "protocol/kafka/example.h"

#include "protocol/kafka/decoder.h"
#include "protocol/kafka/encoder.h"

namespace polylog::protocol::kafka {

void Example::Endpoint::decode_fields(Decoder& in, std::int16_t version) {
  const bool flexible = version >= 3;
  host = in.string(flexible);
  port = in.u16();
  if (flexible) in.skip_tagged_fields();
}

void Example::Endpoint::encode_fields(Encoder& out, std::int16_t version) const {
  const bool flexible = version >= 3;
  out.string(host, flexible);
  out.u16(port);
  if (flexible) out.no_tagged_fields();
}

std::size_t Example::Endpoint::encoded_bytes_min(std::int16_t) {
  return 4;
}

void Example::decode_fields(Decoder& in, std::int16_t version) {
  const bool flexible = version >= 3;
  ratio = in.f64();
  broker_id = in.i32();
  if (version >= 2) big_number = in.i64();
  if (version >= 2 && version <= 3) enabled = in.boolean();
  if (version <= 2) old_name = in.string(false);
  nickname = in.nullable_string(flexible, version >= 2);
  blob = in.bytes(flexible);
  maybe_blob = in.nullable_bytes(flexible);
  version_field = in.i16();
  main.decode_fields(in, version);
  if (version >= 2) in.nullable_struct(spare, version);
  in.nullable_structs(others, flexible, version >= 3, version);
  if (version <= 3) in.array(ids, flexible, 16, [&](Uuid& element) { element = in.uuid(); });
  if (flexible) in.tagged_fields([&](std::uint32_t tag) {
    if (tag == 0) {
      in.nullable_array(names, true, true, 1,
          [&](std::string& element) { element = in.string(true); });
      return true;
    }
    if (tag == 1 && version >= 4) {
      in.array(ids, true, 16, [&](Uuid& element) { element = in.uuid(); });
      return true;
    }
    if (tag == 2 && version >= 4) {
      flags = in.u32();
      return true;
    }
    return false;
  });
}

void Example::encode_fields(Encoder& out, std::int16_t version) const {
  const bool flexible = version >= 3;
  out.f64(ratio);
  out.i32(broker_id);
  if (version >= 2) out.i64(big_number);
  if (version <= 1 || version >= 4) out.absent(!enabled, "enabled");
  if (version >= 2 && version <= 3) out.boolean(enabled);
  if (version >= 3) out.absent(old_name != "none", "old_name");
  if (version <= 2) out.string(old_name, false);
  out.nullable_string(nickname, flexible, version >= 2);
  out.bytes(blob, flexible);
  out.nullable_bytes(maybe_blob, flexible);
  out.i16(version_field);
  main.encode_fields(out, version);
  if (version <= 1) out.absent(spare.has_value(), "spare");
  if (version >= 2) out.nullable_struct(spare, version);
  out.nullable_structs(others, flexible, version >= 3, version);
  if (version <= 3) out.absent(flags != 4294967295, "flags");
  if (version <= 2) out.absent(names.has_value(), "names");
  if (version <= 3) out.array(ids, flexible, [&](const Uuid& element) { out.uuid(element); });
  if (flexible) {
    TaggedFields tagged;
    if (names.has_value()) {
      tagged.add(out, 0, [&](Encoder& field) { field.nullable_array(names, true, true,
          [&](const std::string& element) { field.string(element, true); }); });
    }
    if (version >= 4 && !ids.empty()) {
      tagged.add(out, 1, [&](Encoder& field) { field.array(ids, true,
          [&](const Uuid& element) { field.uuid(element); }); });
    }
    if (version >= 4 && flags != 4294967295) {
      tagged.add(out, 2, [&](Encoder& field) { field.u32(flags); });
    }
    tagged.write(out);
  }
}

Result<Example> Example::decode(const Slice& body, std::int16_t version) {
  if (version < min_version || version > max_version) {
    return fail(Errc::unsupported, "Example v" + std::to_string(version));
  }
  Example message;
  Decoder in(body);
  message.decode_fields(in, version);
  POLYLOG_TRY(in.finish(message_name, version));
  return message;
}

Result<void> Example::encode(ByteWriter& out, std::int16_t version) const {
  if (version < min_version || version > max_version) {
    return fail(Errc::unsupported, "Example v" + std::to_string(version));
  }
  Encoder encoder(out);
  encode_fields(encoder, version);
  return encoder.finish(message_name, version);
}

}  // namespace polylog::protocol::kafka
