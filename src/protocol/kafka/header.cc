#include "protocol/kafka/header.h"

#include "protocol/kafka/api.h"
#include "protocol/kafka/decoder.h"
#include "protocol/kafka/encoder.h"

namespace polylog::protocol::kafka {
namespace {

bool response_is_flexible(std::int16_t api_key, std::int16_t api_version) {
  if (static_cast<ApiKey>(api_key) == ApiKey::api_versions) return false;
  const std::optional<CodecVersions> versions = codec_versions(api_key);
  return versions && api_version >= versions->first_flexible;
}

}  // namespace

Result<RequestHeader> RequestHeader::decode(const Slice& frame) {
  Decoder in(frame);
  RequestHeader header;
  header.api_key = in.i16();
  header.api_version = in.i16();
  const std::optional<CodecVersions> versions = codec_versions(header.api_key);
  if (in.ok() && !versions) {
    return fail(Errc::unsupported, "API key " + std::to_string(header.api_key));
  }
  header.correlation_id = in.i32();
  header.client_id = in.nullable_string(false);
  if (versions && header.api_version >= versions->first_flexible) in.skip_tagged_fields();
  POLYLOG_TRY(in.finish("RequestHeader", header.api_version));
  header.header_bytes = in.position();
  return header;
}

Result<void> RequestHeader::encode(ByteWriter& out) const {
  const std::optional<CodecVersions> versions = codec_versions(api_key);
  if (!versions) return fail(Errc::unsupported, "API key " + std::to_string(api_key));
  Encoder encoder(out);
  encoder.i16(api_key);
  encoder.i16(api_version);
  encoder.i32(correlation_id);
  encoder.nullable_string(client_id, false);
  if (api_version >= versions->first_flexible) encoder.no_tagged_fields();
  return encoder.finish("RequestHeader", api_version);
}

Result<ResponseHeader> ResponseHeader::decode(const Slice& frame, std::int16_t api_key,
                                              std::int16_t api_version) {
  Decoder in(frame);
  ResponseHeader header;
  header.correlation_id = in.i32();
  if (response_is_flexible(api_key, api_version)) in.skip_tagged_fields();
  POLYLOG_TRY(in.finish("ResponseHeader", api_version));
  header.header_bytes = in.position();
  return header;
}

void ResponseHeader::encode(ByteWriter& out, std::int16_t api_key, std::int16_t api_version) const {
  Encoder encoder(out);
  encoder.i32(correlation_id);
  if (response_is_flexible(api_key, api_version)) encoder.no_tagged_fields();
}

}  // namespace polylog::protocol::kafka
