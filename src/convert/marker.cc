#include "convert/marker.h"

#include <string_view>

namespace polylog::convert {
namespace {

constexpr std::string_view headline = "polylog conversion 1";
constexpr std::string_view source_word = "source ";
constexpr std::string_view layout_word = "layout ";
constexpr std::size_t marker_bytes_max = 64 * 1024;

std::string path_of(const std::string& directory) { return fs::join(directory, marker_file); }

// The next line without its end; nothing when the text is over or the line was cut.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

Result<std::optional<Marker>> read_marker(fs::FileSystem& fs, const std::string& directory) {
  const auto bytes = fs::read_file(fs, path_of(directory), marker_bytes_max);
  if (!bytes) {
    if (bytes.error().code == Errc::not_found) return std::optional<Marker>();
    return fail(bytes.error());
  }
  std::string_view text = as_text(*bytes);
  const auto head = take_line(text), layout = take_line(text);
  const bool good = head == headline && layout && layout->starts_with(layout_word) &&
                    text.starts_with(source_word) && text.back() == '\n';
  if (!good) {
    return fail(Errc::corrupt, path_of(directory) + " is no note of a conversion known here");
  }
  text.remove_prefix(source_word.size());
  text.remove_suffix(1);  // a path may contain a line's end
  Marker marker;
  marker.source = text;
  marker.layout = layout->substr(layout_word.size());
  return std::optional(std::move(marker));
}

Result<void> write_marker(fs::FileSystem& fs, const std::string& directory, const Marker& marker) {
  std::string text(headline);
  text += "\n" + std::string(layout_word) + marker.layout;
  text += "\n" + std::string(source_word) + marker.source + "\n";
  return fs::replace_file(fs, path_of(directory), as_bytes(text));
}

Result<void> remove_marker(fs::FileSystem& fs, const std::string& directory) {
  POLYLOG_TRY(fs.remove(path_of(directory)));
  return fs.sync_directory(directory);
}

Result<void> check_finished(fs::FileSystem& fs, const std::string& directory) {
  POLYLOG_ASSIGN(marker, read_marker(fs, directory));
  if (!marker) return {};
  return fail(Errc::invalid, directory + " is an unfinished conversion: run polylog convert " +
                                 marker->source + " " + directory + " --layout " +
                                 marker->layout + " again, or remove the directory");
}

}  // namespace polylog::convert
