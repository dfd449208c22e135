#!/usr/bin/env python3
"""Generates C++ structs with decode and encode from Kafka's message schemas.

    generate_kafka.py --out DIR SCHEMA.json...

writes DIR/foo_request.h and .cc for each schema, and for all of them DIR/all_messages.h (visit by
API key) and DIR/api_table.cc (the versions per API key). The rules of the schemas are Kafka's
(clients/src/main/resources/common/message/README.md); the mapping to C++ is described in
src/protocol/kafka/message.h. Domain types are not mapped here.
"""

import argparse
import json
import pathlib
import re
import sys

# Schema type: C++ type, method of Decoder and Encoder, bytes on the wire.
SCALARS = {
    "bool": ("bool", "boolean", 1),
    "int8": ("std::int8_t", "i8", 1),
    "int16": ("std::int16_t", "i16", 2),
    "int32": ("std::int32_t", "i32", 4),
    "int64": ("std::int64_t", "i64", 8),
    "uint16": ("std::uint16_t", "u16", 2),
    "uint32": ("std::uint32_t", "u32", 4),
    "float64": ("double", "f64", 8),
    "uuid": ("Uuid", "uuid", 16),
}
SLICES = ("bytes", "records")
# Names that the generated functions use themselves, and words of C++ that schemas might use.
RESERVED = {"decode", "element", "encode", "field", "flexible", "in", "message", "out", "tag",
            "tagged", "version", "default", "delete", "namespace", "new", "operator", "register"}
WIDTH = 100


class SchemaError(Exception):
    pass


def snake_case(name):
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def version_set(text, valid):
    """"3+", "2-5", "7", "none" as the set of those versions that are also in `valid`."""
    if text in (None, "none"):
        return frozenset()
    match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    if not match:
        raise SchemaError(f"versions {text!r}")
    first = int(match[1])
    if match[2] == "+":
        return frozenset(v for v in valid if v >= first)
    last = int(match[3] or match[1])
    return frozenset(v for v in valid if first <= v <= last)


def runs(versions):
    """Consecutive versions as (first, last) pairs."""
    out = []
    for version in sorted(versions):
        if out and out[-1][1] == version - 1:
            out[-1][1] = version
        else:
            out.append([version, version])
    return out


def condition(versions, valid):
    """C++ that is true for `versions` when `version` is in `valid`: "true", "false" or a test."""
    if versions == valid:
        return "true"
    tests = []
    for first, last in runs(versions):
        if first == min(valid):
            test = f"version <= {last}"
        elif last == max(valid):
            test = f"version >= {first}"
        elif first == last:
            test = f"version == {first}"
        else:
            test = f"version >= {first} && version <= {last}"
        tests.append(test)
    if len(tests) > 1:
        tests = [f"({test})" if "&&" in test else test for test in tests]
    return " || ".join(tests) or "false"


def conjunction(*tests):
    """C++ that is true if all are."""
    tests = [f"({test})" if "||" in test else test for test in tests if test != "true"]
    return " && ".join(tests) or "true"


class Field:
    """One field of a struct, its versions resolved against those of the message."""

    def __init__(self, json_field, message, struct_versions):
        self.schema_name = json_field["name"]
        self.name = snake_case(self.schema_name)
        if self.name in RESERVED:
            self.name += "_field"
        self.type = json_field["type"]
        valid = message.valid
        self.versions = version_set(json_field.get("versions"), valid) & struct_versions
        self.nullable = version_set(json_field.get("nullableVersions"), valid) & self.versions
        self.tagged = version_set(json_field.get("taggedVersions"), valid) & self.versions
        self.tag = json_field.get("tag")
        self.ignorable = json_field.get("ignorable", False)
        self.is_array = self.type.startswith("[]")
        self.element = self.type[2:] if self.is_array else self.type
        flexible = json_field.get("flexibleVersions")
        self.flexible = message.flexible if flexible is None else version_set(flexible, valid)
        self.own_flexible = flexible is not None
        self.is_struct = self.element not in SCALARS and self.element not in ("string",) + SLICES
        self.optional = json_field.get("nullableVersions", "none") != "none"
        self.optional |= self.type == "records"
        self.default = json_field.get("default")
        self.check(message)

    def check(self, message):
        if self.is_array and self.element in ("bool",) + SLICES:
            raise SchemaError(f"{message.name}.{self.schema_name}: arrays of {self.element}")
        if self.tagged and self.tag is None:
            raise SchemaError(f"{message.name}.{self.schema_name}: tagged without a tag")
        if self.tagged - message.flexible:
            raise SchemaError(f"{message.name}.{self.schema_name}: tagged but not flexible")
        if self.tagged and self.nullable and self.is_struct and not self.is_array:
            raise SchemaError(f"{message.name}.{self.schema_name}: a tagged nullable struct")
        partly_nullable = self.optional and self.nullable != self.versions
        if self.is_struct and not self.is_array and partly_nullable:
            raise SchemaError(f"{message.name}.{self.schema_name}: nullable in some versions only")

    def scalar(self):
        return not self.is_array and self.type in SCALARS

    def cpp_type(self):
        if self.element in SCALARS:
            inner = SCALARS[self.element][0]
        elif self.element == "string":
            inner = "std::string"
        elif self.element in SLICES:
            inner = "Slice"
        else:
            inner = self.element
        if self.is_array:
            inner = f"std::vector<{inner}>"
        return f"std::optional<{inner}>" if self.optional else inner

    def default_value(self):
        """The C++ default, or None where value initialisation already is it."""
        value = self.default
        if self.optional:
            if value == "null" or (value is None and self.type == "records"):
                return None
            return "std::in_place" if not value else f'"{value}"'
        if self.is_array or self.is_struct or self.element in SLICES + ("uuid",):
            if value not in (None, ""):
                raise SchemaError(f"{self.schema_name}: default {value!r}")
            return None
        if self.type == "string":
            return f'"{value}"' if value else None
        if self.type == "bool":
            return "true" if str(value).lower() == "true" else "false"
        if self.type == "float64":
            return repr(float(value or 0))
        number = int(str(value or 0), 0)
        if number == -(2**63):
            return "std::numeric_limits<std::int64_t>::min()"
        return str(number)

    def differs_from_default(self):
        """C++ that is true if the field holds something else than its default."""
        value = self.default_value()
        if self.optional:
            if value is None:
                return f"{self.name}.has_value()"
            if self.type == "string":
                return f'{self.name} != {value if value != "std::in_place" else chr(34) * 2}'
            return f"!{self.name} || !{self.name}->empty()"
        if self.is_array or self.element in SLICES:
            return f"!{self.name}.empty()"
        if self.type == "uuid":
            return f"!{self.name}.is_zero()"
        if self.is_struct:
            return f"!({self.name} == {self.element}{{}})"
        if self.type == "string":
            return f"{self.name} != {value}" if value else f"!{self.name}.empty()"
        if self.type == "bool":
            return f"!{self.name}" if value == "true" else self.name
        return f"{self.name} != {value}"

    def bytes_min(self, version, structs):
        """What the shortest value takes on the wire when the field is not tagged."""
        flexible = version in self.flexible
        if self.is_array or self.type in SLICES:
            return 1 if flexible else 4
        if self.type == "string":
            return 1 if flexible else 2
        if self.scalar():
            return SCALARS[self.type][2]
        return 1 if self.optional else structs[self.type].bytes_min(version, structs)


class Struct:
    def __init__(self, name, fields, versions):
        self.name = name
        self.fields = fields
        self.versions = versions

    def tagged(self):
        return sorted((f for f in self.fields if f.tagged), key=lambda f: f.tag)

    def bytes_min(self, version, structs):
        plain = (f for f in self.fields if version in f.versions - f.tagged)
        size = sum(f.bytes_min(version, structs) for f in plain)
        return size + (1 if version in self.flexible else 0)

    def comparable(self, structs):
        return all(f.element not in SLICES and
                   (not f.is_struct or structs[f.element].comparable(structs))
                   for f in self.fields)


class Message:
    """A schema: the message's own fields, and its structs with dependencies first."""

    def __init__(self, schema):
        self.name = schema["name"]
        self.type = schema["type"]
        self.api_key = schema.get("apiKey", -1)
        first, _, last = schema["validVersions"].partition("-")
        self.valid = frozenset(range(int(first), int(last or first) + 1))
        self.flexible = version_set(schema.get("flexibleVersions", "none"), self.valid)
        self.unstable = schema.get("latestVersionUnstable", False)
        self.common = {s["name"]: s for s in schema.get("commonStructs", [])}
        self.structs = {}
        self.root = self.struct(self.name, schema["fields"], self.valid)
        self.check()

    def struct(self, name, json_fields, versions):
        fields = []
        for json_field in json_fields:
            field = Field(json_field, self, versions)
            if field.is_struct and field.element not in self.structs:
                if "fields" in json_field:
                    inner, inner_versions = json_field["fields"], field.versions
                elif field.element in self.common:
                    common = self.common[field.element]
                    inner, inner_versions = common["fields"], self.valid
                else:
                    raise SchemaError(f"{self.name}: unknown type {field.element!r}")
                self.structs[field.element] = self.struct(field.element, inner, inner_versions)
            fields.append(field)
        out = Struct(name, fields, versions)
        out.flexible = self.flexible
        return out

    def check(self):
        for struct in list(self.structs.values()) + [self.root]:
            names = [f.name for f in struct.fields]
            if len(set(names)) != len(names):
                raise SchemaError(f"{self.name}.{struct.name}: a field twice")
            tags = [f.tag for f in struct.tagged()]
            if len(set(tags)) != len(tags):
                raise SchemaError(f"{self.name}.{struct.name}: a tag twice")
        for struct in self.structs.values():
            for version in struct.versions:
                if struct.bytes_min(version, self.structs) == 0:
                    raise SchemaError(f"{self.name}.{struct.name}: empty in v{version}")

    def file(self):
        return snake_case(self.name)


class Lines:
    """C++ under construction, one statement a line, wrapped at WIDTH."""

    def __init__(self):
        self.lines = []

    def add(self, text="", indent=0):
        line = " " * indent + text
        while len(line) > WIDTH:
            marks = ((", ", 1), (" || ", 3), ("(", 1), (" ", 0))
            ends = (line.rfind(mark, 0, WIDTH - 2) + keep for mark, keep in marks)
            at = next((end for end in ends if end > indent + 4), None)
            if at is None:
                raise SchemaError(f"cannot wrap: {text}")
            self.lines.append(line[:at].rstrip())
            line = " " * (indent + 4) + line[at:].lstrip()
        self.lines.append(line.rstrip())

    def guarded(self, test, statement, indent=2):
        """`if (test) statement`, without the test when it is always true."""
        if test == "true":
            self.add(statement, indent)
        elif len(test) + len(statement) + indent + 5 <= WIDTH:
            self.add(f"if ({test}) {statement}", indent)
        else:
            self.add(f"if ({test}) {{", indent)
            self.add(statement, indent + 2)
            self.add("}", indent)

    def text(self):
        return "\n".join(self.lines) + "\n"


def flexible_argument(field, message, versions):
    """C++ for "the field's lengths are compact" among `versions`."""
    if versions <= field.flexible:
        return "true"
    if not versions & field.flexible:
        return "false"
    return condition(field.flexible, message.valid) if field.own_flexible else "flexible"


def null_arguments(field, message, versions):
    """The null_allowed argument; "" where the default (always allowed) is right."""
    if versions <= field.nullable:
        return ""
    if not versions & field.nullable:
        return ", false"
    return ", " + condition(field.nullable, message.valid)


def decode_statement(field, message, versions):
    flexible = flexible_argument(field, message, versions)
    null = null_arguments(field, message, versions)
    name = field.name
    if field.is_array:
        nullable = "nullable_" if field.optional else ""
        null = (null or ", true") if field.optional else ""
        if field.is_struct:
            return f"in.{nullable}structs({name}, {flexible}{null}, version);"
        cpp = "std::string" if field.element == "string" else SCALARS[field.element][0]
        if field.element == "string":
            # The shortest string of the widest range of versions.
            size = "1" if flexible == "true" else "2" if flexible == "false" else \
                f"{flexible} ? 1u : 2u"
            read = f"in.string({flexible})"
        else:
            size = str(SCALARS[field.element][2])
            read = f"in.{SCALARS[field.element][1]}()"
        return (f"in.{nullable}array({name}, {flexible}{null}, {size}, "
                f"[&]({cpp}& element) {{ element = {read}; }});")
    if field.is_struct:
        if field.optional:
            return f"in.nullable_struct({name}, version);"
        return f"{name}.decode_fields(in, version);"
    if field.scalar():
        return f"{name} = in.{SCALARS[field.type][1]}();"
    kind = "string" if field.type == "string" else "bytes"
    if field.optional:
        return f"{name} = in.nullable_{kind}({flexible}{null});"
    return f"{name} = in.{kind}({flexible});"


def encode_statement(field, message, versions, out="out"):
    flexible = flexible_argument(field, message, versions)
    null = null_arguments(field, message, versions)
    name = field.name
    if field.is_array:
        nullable = "nullable_" if field.optional else ""
        null = (null or ", true") if field.optional else ""
        if field.is_struct:
            return f"{out}.{nullable}structs({name}, {flexible}{null}, version);"
        if field.element == "string":
            cpp, write = "const std::string&", f"{out}.string(element, {flexible})"
        elif field.element == "uuid":
            cpp, write = "const Uuid&", f"{out}.uuid(element)"
        else:
            cpp = SCALARS[field.element][0]
            write = f"{out}.{SCALARS[field.element][1]}(element)"
        return (f"{out}.{nullable}array({name}, {flexible}{null}, "
                f"[&]({cpp} element) {{ {write}; }});")
    if field.is_struct:
        if field.optional:
            return f"{out}.nullable_struct({name}, version);"
        return f"{name}.encode_fields({out}, version);"
    if field.scalar():
        return f"{out}.{SCALARS[field.type][1]}({name});"
    kind = "string" if field.type == "string" else "bytes"
    if field.optional:
        return f"{out}.nullable_{kind}({name}, {flexible}{null});"
    return f"{out}.{kind}({name}, {flexible});"


def uses(statements, word):
    return any(re.search(rf"\b{word}\b", line) for line in statements)


def emit_function(out, message, struct, signature, body, argument):
    """A member function; declares `flexible` only if the body asks for it."""
    if not uses(body.lines, argument):
        signature = signature.replace(f"& {argument},", "&,")
    needs_flexible = uses(body.lines, "flexible")
    if not needs_flexible and not uses(body.lines, "version"):
        signature = signature.replace(" version)", ")")
    out.add(signature)
    if needs_flexible:
        test = condition(message.flexible & struct.versions, struct.versions)
        out.add(f"const bool flexible = {test};", 2)
    out.lines += body.lines
    out.add("}")
    out.add()


def emit_decode_fields(out, message, struct, scope):
    body = Lines()
    for field in struct.fields:
        plain = field.versions - field.tagged
        if plain:
            body.guarded(condition(plain, struct.versions), decode_statement(field, message, plain))
    if struct.versions & message.flexible:
        emit_decode_tagged(body, message, struct)
    signature = f"void {scope}::decode_fields(Decoder& in, std::int16_t version) {{"
    emit_function(out, message, struct, signature, body, "in")


def emit_decode_tagged(body, message, struct):
    test = condition(message.flexible & struct.versions, struct.versions)
    guard = {"true": "", "false": None}.get(test, "if (flexible) ")
    if not struct.tagged():
        body.add(f"{guard}in.skip_tagged_fields();", 2)
        return
    body.add(f"{guard}in.tagged_fields([&](std::uint32_t tag) {{", 2)
    for field in struct.tagged():
        known = condition(field.tagged, message.flexible & struct.versions)
        body.add(f"if ({conjunction(f'tag == {field.tag}', known)}) {{", 4)
        body.add(decode_statement(field, message, field.tagged), 6)
        body.add("return true;", 6)
        body.add("}", 4)
    body.add("return false;", 4)
    body.add("});", 2)


def emit_encode_fields(out, message, struct, scope):
    body = Lines()
    for field in struct.fields:
        missing = struct.versions - field.versions
        if missing and not field.ignorable:
            statement = f'out.absent({field.differs_from_default()}, "{field.name}");'
            body.guarded(condition(missing, struct.versions), statement)
        plain = field.versions - field.tagged
        if plain:
            body.guarded(condition(plain, struct.versions), encode_statement(field, message, plain))
    if struct.versions & message.flexible:
        emit_encode_tagged(body, message, struct)
    signature = f"void {scope}::encode_fields(Encoder& out, std::int16_t version) const {{"
    emit_function(out, message, struct, signature, body, "out")


def emit_encode_tagged(body, message, struct):
    always = struct.versions <= message.flexible
    if not struct.tagged():
        body.guarded("true" if always else "flexible", "out.no_tagged_fields();")
        return
    indent = 2 if always else 4
    if not always:
        body.add("if (flexible) {", 2)
    body.add("TaggedFields tagged;", indent)
    for field in struct.tagged():
        known = condition(field.tagged, message.flexible & struct.versions)
        test = conjunction(known, field.differs_from_default())
        statement = encode_statement(field, message, field.tagged, "field")
        body.add(f"if ({test}) {{", indent)
        body.add(f"tagged.add(out, {field.tag}, [&](Encoder& field) {{ {statement} }});",
                 indent + 2)
        body.add("}", indent)
    body.add("tagged.write(out);", indent)
    if not always:
        body.add("}", 2)


def emit_bytes_min(out, message, struct, scope):
    sizes = {v: struct.bytes_min(v, message.structs) for v in sorted(struct.versions)}
    # Versions without the struct never ask; they get the size of the nearest version.
    grouped = []
    for version, size in sizes.items():
        if grouped and grouped[-1][1] == size:
            grouped[-1][0] = version
        else:
            grouped.append([version, size])
    argument = " version" if len(grouped) > 1 else ""
    out.add(f"std::size_t {scope}::encoded_bytes_min(std::int16_t{argument}) {{")
    for last, size in grouped[:-1]:
        out.add(f"if (version <= {last}) return {size};", 2)
    out.add(f"return {grouped[-1][1]};", 2)
    out.add("}")
    out.add()


def emit_members(out, struct, indent):
    for field in struct.fields:
        value = field.default_value()
        if value == "std::in_place":
            # An empty value, not null.
            out.add(f"{field.cpp_type()} {field.name}{{std::in_place}};", indent)
        else:
            # Braces everywhere: a member without an initialiser would warn in `{.a = 1}`.
            suffix = f" = {value}" if value is not None else "{}" if not field.scalar() else ""
            if field.type == "uuid" and not field.is_array:
                suffix = "{}"
            out.add(f"{field.cpp_type()} {field.name}{suffix};", indent)


GENERATED = "// Generated from {}.json; do not edit."


def header_text(message):
    out = Lines()
    out.add(GENERATED.format(message.name))
    out.add("#pragma once")
    out.add()
    limits_at = len(out.lines)
    out.add('#include "protocol/kafka/message.h"')
    out.add()
    out.add("namespace polylog::protocol::kafka {")
    out.add()
    out.add(f"struct {message.name} {{")
    first_flexible = min(message.flexible, default=max(message.valid) + 1)
    out.add(f'static constexpr std::string_view message_name = "{message.name}";', 2)
    for name, value in (("api_key", message.api_key), ("min_version", min(message.valid)),
                        ("max_version", max(message.valid)),
                        ("first_flexible_version", first_flexible)):
        out.add(f"static constexpr std::int16_t {name} = {value};", 2)
    out.add()
    for struct in message.structs.values():
        out.add(f"struct {struct.name} {{", 2)
        emit_members(out, struct, 4)
        out.add()
        out.add("void decode_fields(Decoder& in, std::int16_t version);", 4)
        out.add("void encode_fields(Encoder& out, std::int16_t version) const;", 4)
        out.add("// What the shortest one takes on the wire.", 4)
        out.add("static std::size_t encoded_bytes_min(std::int16_t version);", 4)
        if struct.comparable(message.structs):
            out.add(f"bool operator==(const {struct.name}&) const = default;", 4)
        out.add("};", 2)
        out.add()
    emit_members(out, message.root, 2)
    out.add()
    out.add(f"static Result<{message.name}> decode(const Slice& body, std::int16_t version);", 2)
    out.add("Result<void> encode(ByteWriter& out, std::int16_t version) const;", 2)
    if message.root.comparable(message.structs):
        out.add(f"bool operator==(const {message.name}&) const = default;", 2)
    out.add()
    out.add("void decode_fields(Decoder& in, std::int16_t version);", 2)
    out.add("void encode_fields(Encoder& out, std::int16_t version) const;", 2)
    out.add("};")
    out.add()
    out.add("}  // namespace polylog::protocol::kafka")
    if any("std::numeric_limits" in line for line in out.lines):
        out.lines[limits_at:limits_at] = ["#include <limits>", ""]
    return out.text()


SOURCE_HEAD = """\
#include "protocol/kafka/{file}.h"

#include "protocol/kafka/decoder.h"
#include "protocol/kafka/encoder.h"

namespace polylog::protocol::kafka {{
"""

CHECK_VERSION = """\
  if (version < min_version || version > max_version) {{
    return fail(Errc::unsupported, "{name} v" + std::to_string(version));
  }}"""


def source_text(message):
    out = Lines()
    out.add(GENERATED.format(message.name))
    out.lines += SOURCE_HEAD.format(file=message.file()).splitlines()
    out.add()
    for struct in list(message.structs.values()) + [message.root]:
        is_root = struct is message.root
        scope = message.name if is_root else f"{message.name}::{struct.name}"
        emit_decode_fields(out, message, struct, scope)
        emit_encode_fields(out, message, struct, scope)
        if not is_root:
            emit_bytes_min(out, message, struct, scope)
    check = CHECK_VERSION.format(name=message.name).splitlines()
    out.add(f"Result<{message.name}> {message.name}::decode(const Slice& body, "
            "std::int16_t version) {")
    out.lines += check
    out.add(f"{message.name} message;", 2)
    out.add("Decoder in(body);", 2)
    out.add("message.decode_fields(in, version);", 2)
    out.add("POLYLOG_TRY(in.finish(message_name, version));", 2)
    out.add("return message;", 2)
    out.add("}")
    out.add()
    out.add(f"Result<void> {message.name}::encode(ByteWriter& out, std::int16_t version) const {{")
    out.lines += check
    out.add("Encoder encoder(out);", 2)
    out.add("encode_fields(encoder, version);", 2)
    out.add("return encoder.finish(message_name, version);", 2)
    out.add("}")
    out.add()
    out.add("}  // namespace polylog::protocol::kafka")
    return out.text()


def all_messages_text(messages):
    out = Lines()
    out.add("// Generated from the schemas; do not edit.")
    out.add("#pragma once")
    out.add()
    for message in messages:
        out.add(f'#include "protocol/kafka/{message.file()}.h"')
    out.add()
    out.add("namespace polylog::protocol::kafka {")
    for kind in ("request", "response"):
        out.add()
        out.add(f"// Calls visitor.template operator()<M>() for each {kind} M, by API key.")
        out.add("template <typename Visitor>")
        out.add(f"void for_each_{kind}(Visitor&& visitor) {{")
        for message in messages:
            if message.type == kind:
                out.add(f"visitor.template operator()<{message.name}>();", 2)
        out.add("}")
    out.add()
    out.add("}  // namespace polylog::protocol::kafka")
    return out.text()


def api_table_text(messages):
    requests = {m.api_key: m for m in messages if m.type == "request"}
    responses = {m.api_key: m for m in messages if m.type == "response"}
    out = Lines()
    out.add("// Generated from the schemas; do not edit.")
    out.add('#include "protocol/kafka/api.h"')
    out.add()
    out.add("namespace polylog::protocol::kafka {")
    out.add()
    out.add("std::optional<CodecVersions> codec_versions(std::int16_t api_key) {")
    out.add("switch (api_key) {", 2)
    for key, request in sorted(requests.items()):
        response = responses.get(key)
        if response is None or (response.valid, response.flexible) != (
                request.valid, request.flexible):
            raise SchemaError(f"{request.name} and its response have different versions")
        last = max(request.valid)
        stable = last - 1 if request.unstable else last
        flexible = min(request.flexible, default=last + 1)
        out.add(f"case {key}:", 4)
        out.add(f"return CodecVersions{{.first = {min(request.valid)}, .last = {last}, "
                f".last_stable = {stable}, .first_flexible = {flexible}}};", 6)
    out.add("default:", 4)
    out.add("return std::nullopt;", 6)
    out.add("}", 2)
    out.add("}")
    out.add()
    out.add("}  // namespace polylog::protocol::kafka")
    return out.text()


def read_schema(path):
    try:
        return Message(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))
    except (KeyError, ValueError) as error:
        raise SchemaError(f"{path}: {error!r}") from error


def write_if_changed(path, text):
    """Leaves the time of an unchanged file alone, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("schemas", nargs="+")
    arguments = parser.parse_args()
    try:
        messages = [read_schema(path) for path in arguments.schemas]
        messages.sort(key=lambda m: (m.api_key, m.type))
        files = {"all_messages.h": all_messages_text(messages),
                 "api_table.cc": api_table_text(messages)}
        for message in messages:
            files[message.file() + ".h"] = header_text(message)
            files[message.file() + ".cc"] = source_text(message)
    except SchemaError as error:
        sys.exit(f"generate_kafka.py: {error}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_if_changed(arguments.out / name, text)


if __name__ == "__main__":
    main()
