// The values that a module shares with its host, and how their types and bytes are written (BSATN).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace lightcone {

/// Writes a Panic record to the module's log and ends the call; its transaction is rolled back.
[[noreturn]] void panic(std::string_view message);

using i128 = __int128;
using u128 = unsigned __int128;

/// 256 bits, the lowest word first.
struct u256 {
    std::array<uint64_t, 4> words{};
    bool operator==(const u256&) const = default;
    bool operator<(const u256& other) const {
        for (size_t word = 4; word-- != 0;) {
            if (words[word] != other.words[word]) {
                return words[word] < other.words[word];
            }
        }
        return false;
    }
};

/// 256 bits in two's complement, the lowest word first.
struct i256 {
    std::array<uint64_t, 4> words{};
    bool operator==(const i256&) const = default;
};

/// No value at all: the payload of variants that have none.
struct Unit {
    bool operator==(const Unit&) const = default;
};

/// A user, module or database.
struct Identity {
    u256 value;
    bool operator==(const Identity&) const = default;
    bool operator<(const Identity& other) const { return value < other.value; }
    /// 64 hexadecimal digits, the highest first.
    std::string to_hex() const;
};

/// A connection of a client; zero is none.
struct ConnectionId {
    u128 value = 0;
    auto operator<=>(const ConnectionId&) const = default;
};

/// Microseconds since 1970.
struct Timestamp {
    int64_t micros = 0;
    auto operator<=>(const Timestamp&) const = default;
};

/// Microseconds.
struct TimeDuration {
    int64_t micros = 0;
    auto operator<=>(const TimeDuration&) const = default;
};

/// When a row of a schedule table runs: again and again, or once.
struct ScheduleAt : std::variant<TimeDuration, Timestamp> {
    using variant::variant;
};

/// 128 bits.
struct Uuid {
    u128 value = 0;
    auto operator<=>(const Uuid&) const = default;
};

/// `Ok` or `Err`, as a value of a column or parameter.
template <class Ok, class Err>
struct Result : std::variant<Ok, Err> {
    using std::variant<Ok, Err>::variant;
};

/// Bytes that grow.
struct Writer {
    std::vector<uint8_t> bytes;

    void raw(const void* data, size_t length) {
        auto begin = static_cast<const uint8_t*>(data);
        bytes.insert(bytes.end(), begin, begin + length);
    }
    template <class T>
    void number(T value) {
        // WebAssembly is little-endian, as BSATN is.
        raw(&value, sizeof value);
    }
    void length(size_t count) { number(static_cast<uint32_t>(count)); }
    void text(std::string_view text) {
        length(text.size());
        raw(text.data(), text.size());
    }
    void tag(uint8_t tag) { number(tag); }
    /// An optional name that is there.
    void name(std::string_view name) {
        tag(0);
        text(name);
    }
};

/// Bytes that are read once. What does not fit ends the call: the host has checked what it sends.
struct Reader {
    const uint8_t* at;
    const uint8_t* end;

    explicit Reader(const std::vector<uint8_t>& bytes) : at(bytes.data()), end(at + bytes.size()) {}
    bool is_empty() const { return at == end; }
    void raw(void* data, size_t length) {
        if (static_cast<size_t>(end - at) < length) {
            panic("the host sent too few bytes");
        }
        if (length != 0) {
            std::memcpy(data, at, length);
        }
        at += length;
    }
    template <class T>
    T number() {
        T value;
        raw(&value, sizeof value);
        return value;
    }
    uint32_t length() { return number<uint32_t>(); }
    std::string text() {
        auto size = length();
        if (static_cast<size_t>(end - at) < size) {
            panic("the host sent too few bytes");
        }
        std::string text(reinterpret_cast<const char*>(at), size);
        at += size;
        return text;
    }
};

/// Specialised by `LIGHTCONE_TYPE`: `name`, and `fields(visit)`, which calls `visit("field", &Type::field)` for each.
template <class T>
struct Fields;

/// Specialised by `LIGHTCONE_SUM`: `name` and `variants`.
template <class T>
struct Variants;

/// Specialised by `LIGHTCONE_ENUM`: `name` and `variants`.
template <class T>
struct Enumerators;

/// The named types of the module. A type is described where it is first mentioned.
class Types {
  public:
    struct Entry {
        std::string_view name;
        Writer type;
    };
    std::vector<Entry> entries;

    /// The place of a type; `describe` writes it if it is new.
    template <class T, class Describe>
    uint32_t place(std::string_view name, Describe describe) {
        static const char key = 0;
        auto found = places_.find(&key);
        if (found != places_.end()) {
            return found->second;
        }
        auto place = static_cast<uint32_t>(entries.size());
        places_.emplace(&key, place);
        // First, so that a type can mention itself.
        entries.push_back({name, {}});
        Writer type;
        describe(type);
        entries[place].type = std::move(type);
        return place;
    }

  private:
    std::map<const char*, uint32_t> places_;
};

/// How values of a type are written and read, and the type itself: `write`, `read`, `type`.
template <class T>
struct Codec;

template <class T>
void write(Writer& out, const T& value) {
    Codec<T>::write(out, value);
}

template <class T>
T read(Reader& in) {
    return Codec<T>::read(in);
}

template <class T>
void write_type(Writer& out, Types& types) {
    Codec<T>::type(out, types);
}

/// Values whose bytes are those of memory.
template <class T, uint8_t Tag>
struct NumberCodec {
    static void write(Writer& out, const T& value) { out.number(value); }
    static T read(Reader& in) { return in.number<T>(); }
    static void type(Writer& out, Types&) { out.tag(Tag); }
};

template <> struct Codec<int8_t> : NumberCodec<int8_t, 6> {};
template <> struct Codec<uint8_t> : NumberCodec<uint8_t, 7> {};
template <> struct Codec<int16_t> : NumberCodec<int16_t, 8> {};
template <> struct Codec<uint16_t> : NumberCodec<uint16_t, 9> {};
template <> struct Codec<int32_t> : NumberCodec<int32_t, 10> {};
template <> struct Codec<uint32_t> : NumberCodec<uint32_t, 11> {};
template <> struct Codec<int64_t> : NumberCodec<int64_t, 12> {};
template <> struct Codec<uint64_t> : NumberCodec<uint64_t, 13> {};
template <> struct Codec<i128> : NumberCodec<i128, 14> {};
template <> struct Codec<u128> : NumberCodec<u128, 15> {};
template <> struct Codec<i256> : NumberCodec<i256, 16> {};
template <> struct Codec<u256> : NumberCodec<u256, 17> {};
template <> struct Codec<float> : NumberCodec<float, 18> {};
template <> struct Codec<double> : NumberCodec<double, 19> {};

template <>
struct Codec<bool> {
    static void write(Writer& out, const bool& value) { out.tag(value ? 1 : 0); }
    static bool read(Reader& in) { return in.number<uint8_t>() != 0; }
    static void type(Writer& out, Types&) { out.tag(5); }
};

template <>
struct Codec<std::string> {
    static void write(Writer& out, const std::string& value) { out.text(value); }
    static std::string read(Reader& in) { return in.text(); }
    static void type(Writer& out, Types&) { out.tag(4); }
};

template <class T>
struct Codec<std::vector<T>> {
    static void write(Writer& out, const std::vector<T>& values) {
        out.length(values.size());
        for (const T& value : values) {
            lightcone::write<T>(out, value);
        }
    }
    static std::vector<T> read(Reader& in) {
        std::vector<T> values;
        for (uint32_t left = in.length(); left != 0; left--) {
            values.push_back(lightcone::read<T>(in));
        }
        return values;
    }
    static void type(Writer& out, Types& types) {
        out.tag(3);
        write_type<T>(out, types);
    }
};

inline void write_unit_type(Writer& out) {
    out.tag(2);
    out.length(0);
}

template <>
struct Codec<Unit> {
    static void write(Writer&, const Unit&) {}
    static Unit read(Reader&) { return {}; }
    static void type(Writer& out, Types&) { write_unit_type(out); }
};

template <class T>
struct Codec<std::optional<T>> {
    static void write(Writer& out, const std::optional<T>& value) {
        out.tag(value ? 0 : 1);
        if (value) {
            lightcone::write<T>(out, *value);
        }
    }
    static std::optional<T> read(Reader& in) {
        if (in.number<uint8_t>() != 0) {
            return std::nullopt;
        }
        return lightcone::read<T>(in);
    }
    static void type(Writer& out, Types& types) {
        out.tag(1);
        out.length(2);
        out.name("some");
        write_type<T>(out, types);
        out.name("none");
        write_unit_type(out);
    }
};

/// Special types are products of one field with a name of its own.
template <class T, auto Member>
struct SpecialCodec {
    using Inner = std::remove_cvref_t<decltype(std::declval<T>().*Member)>;
    static void write(Writer& out, const T& value) { lightcone::write<Inner>(out, value.*Member); }
    static T read(Reader& in) {
        T value;
        value.*Member = lightcone::read<Inner>(in);
        return value;
    }
    static void type_named(Writer& out, Types& types, std::string_view name) {
        out.tag(2);
        out.length(1);
        out.name(name);
        write_type<Inner>(out, types);
    }
};

template <>
struct Codec<Identity> : SpecialCodec<Identity, &Identity::value> {
    static void type(Writer& out, Types& types) { type_named(out, types, "__identity__"); }
};
template <>
struct Codec<ConnectionId> : SpecialCodec<ConnectionId, &ConnectionId::value> {
    static void type(Writer& out, Types& types) { type_named(out, types, "__connection_id__"); }
};
template <>
struct Codec<Timestamp> : SpecialCodec<Timestamp, &Timestamp::micros> {
    static void type(Writer& out, Types& types) {
        type_named(out, types, "__timestamp_micros_since_unix_epoch__");
    }
};
template <>
struct Codec<TimeDuration> : SpecialCodec<TimeDuration, &TimeDuration::micros> {
    static void type(Writer& out, Types& types) {
        type_named(out, types, "__time_duration_micros__");
    }
};
template <>
struct Codec<Uuid> : SpecialCodec<Uuid, &Uuid::value> {
    static void type(Writer& out, Types& types) { type_named(out, types, "__uuid__"); }
};

/// A sum over the alternatives of a variant, which is a base of `T`.
template <class T, class Base>
struct VariantCodec;

template <class T, class... Alternatives>
struct VariantCodec<T, std::variant<Alternatives...>> {
    using Base = std::variant<Alternatives...>;

    static void write(Writer& out, const T& value) {
        const Base& base = value;
        out.tag(static_cast<uint8_t>(base.index()));
        write_at(out, base, std::index_sequence_for<Alternatives...>{});
    }
    static T read(Reader& in) {
        auto tag = in.number<uint8_t>();
        T value;
        if (!read_at(in, value, tag, std::index_sequence_for<Alternatives...>{})) {
            panic("the host sent a variant that the type does not have");
        }
        return value;
    }
    static void type_named(Writer& out, Types& types, const char* const* names) {
        out.tag(1);
        out.length(sizeof...(Alternatives));
        (variant(out, types, *names++, static_cast<Alternatives*>(nullptr)), ...);
    }

  private:
    template <size_t... Index>
    static void write_at(Writer& out, const Base& base, std::index_sequence<Index...>) {
        ((base.index() == Index
              ? lightcone::write<std::variant_alternative_t<Index, Base>>(out, *std::get_if<Index>(&base))
              : void()),
         ...);
    }
    template <size_t... Index>
    static bool read_at(Reader& in, Base& base, uint8_t tag, std::index_sequence<Index...>) {
        return ((tag == Index &&
                 (base.template emplace<Index>(
                      lightcone::read<std::variant_alternative_t<Index, Base>>(in)),
                  true)) ||
                ...);
    }
    template <class Alternative>
    static void variant(Writer& out, Types& types, const char* name, Alternative*) {
        out.name(name);
        write_type<Alternative>(out, types);
    }
};

template <>
struct Codec<ScheduleAt> : VariantCodec<ScheduleAt, std::variant<TimeDuration, Timestamp>> {
    static void type(Writer& out, Types& types) {
        static const char* const names[] = {"Interval", "Time"};
        type_named(out, types, names);
    }
};

template <class Ok, class Err>
struct Codec<Result<Ok, Err>> : VariantCodec<Result<Ok, Err>, std::variant<Ok, Err>> {
    static void type(Writer& out, Types& types) {
        static const char* const names[] = {"ok", "err"};
        VariantCodec<Result<Ok, Err>, std::variant<Ok, Err>>::type_named(out, types, names);
    }
};

/// Types of `LIGHTCONE_TYPE`.
template <class T>
    requires requires { Fields<T>::name; }
struct Codec<T> {
    static void write(Writer& out, const T& value) {
        Fields<T>::fields([&](const char*, auto member) {
            lightcone::write<std::remove_cvref_t<decltype(value.*member)>>(out, value.*member);
        });
    }
    static T read(Reader& in) {
        T value{};
        Fields<T>::fields([&](const char*, auto member) {
            value.*member = lightcone::read<std::remove_cvref_t<decltype(value.*member)>>(in);
        });
        return value;
    }
    static uint32_t place(Types& types) {
        return types.place<T>(Fields<T>::name, [&](Writer& out) {
            uint32_t count = 0;
            Fields<T>::fields([&](const char*, auto) { count++; });
            out.tag(2);
            out.length(count);
            Fields<T>::fields([&](const char* name, auto member) {
                out.name(name);
                write_type<std::remove_cvref_t<decltype(std::declval<T&>().*member)>>(out, types);
            });
        });
    }
    static void type(Writer& out, Types& types) {
        auto reference = place(types);
        out.tag(0);
        out.number(reference);
    }
};

/// Types of `LIGHTCONE_SUM`.
template <class T>
    requires requires { Variants<T>::name; }
struct Codec<T> : VariantCodec<T, typename T::variant> {
    static void type(Writer& out, Types& types) {
        auto reference = types.place<T>(Variants<T>::name, [&](Writer& out) {
            VariantCodec<T, typename T::variant>::type_named(out, types, Variants<T>::variants);
        });
        out.tag(0);
        out.number(reference);
    }
};

/// Types of `LIGHTCONE_ENUM`.
template <class T>
    requires requires { Enumerators<T>::name; }
struct Codec<T> {
    static void write(Writer& out, const T& value) { out.tag(static_cast<uint8_t>(value)); }
    static T read(Reader& in) { return static_cast<T>(in.number<uint8_t>()); }
    static void type(Writer& out, Types& types) {
        auto reference = types.place<T>(Enumerators<T>::name, [&](Writer& out) {
            out.tag(1);
            out.length(std::size(Enumerators<T>::variants));
            for (const char* variant : Enumerators<T>::variants) {
                out.name(variant);
                write_unit_type(out);
            }
        });
        out.tag(0);
        out.number(reference);
    }
};

}  // namespace lightcone

// ---- Macros --------------------------------------------------------------------------------------------------------

// Calls `macro(fixed, argument)` for each further argument.
#define LIGHTCONE_EACH(macro, fixed, ...) \
    __VA_OPT__(LIGHTCONE_EXPAND(LIGHTCONE_EACH_STEP(macro, fixed, __VA_ARGS__)))
#define LIGHTCONE_EACH_STEP(macro, fixed, first, ...) \
    macro(fixed, first) __VA_OPT__(LIGHTCONE_EACH_AGAIN LIGHTCONE_PARENS(macro, fixed, __VA_ARGS__))
#define LIGHTCONE_EACH_AGAIN() LIGHTCONE_EACH_STEP
#define LIGHTCONE_PARENS ()
// The preprocessor looks at its result as often as it is told to: up to 255 arguments.
#define LIGHTCONE_EXPAND(...) \
    LIGHTCONE_EXPAND4(LIGHTCONE_EXPAND4(LIGHTCONE_EXPAND4(LIGHTCONE_EXPAND4(__VA_ARGS__))))
#define LIGHTCONE_EXPAND4(...) \
    LIGHTCONE_EXPAND3(LIGHTCONE_EXPAND3(LIGHTCONE_EXPAND3(LIGHTCONE_EXPAND3(__VA_ARGS__))))
#define LIGHTCONE_EXPAND3(...) \
    LIGHTCONE_EXPAND2(LIGHTCONE_EXPAND2(LIGHTCONE_EXPAND2(LIGHTCONE_EXPAND2(__VA_ARGS__))))
#define LIGHTCONE_EXPAND2(...) \
    LIGHTCONE_EXPAND1(LIGHTCONE_EXPAND1(LIGHTCONE_EXPAND1(LIGHTCONE_EXPAND1(__VA_ARGS__))))
#define LIGHTCONE_EXPAND1(...) __VA_ARGS__

#define LIGHTCONE_FIELD(Type, field) visit(#field, &Type::field);
#define LIGHTCONE_NAME(unused, name) #name,

/// A struct that tables, parameters and other types can use: `LIGHTCONE_TYPE(Person, id, name)`. In the global namespace.
#define LIGHTCONE_TYPE(Type, ...)                             \
    template <>                                               \
    struct lightcone::Fields<Type> {                          \
        static constexpr const char* name = #Type;            \
        template <class Visit>                                \
        static void fields(Visit&& visit) {                   \
            LIGHTCONE_EACH(LIGHTCONE_FIELD, Type, __VA_ARGS__) \
        }                                                     \
    };

/// A struct over a `std::variant`: `struct Shape : std::variant<Unit, Circle> { using variant::variant; };` and
/// `LIGHTCONE_SUM(Shape, nothing, circle)`.
#define LIGHTCONE_SUM(Type, ...)                                                                       \
    template <>                                                                                        \
    struct lightcone::Variants<Type> {                                                                 \
        static constexpr const char* name = #Type;                                                     \
        static constexpr const char* variants[] = {LIGHTCONE_EACH(LIGHTCONE_NAME, unused, __VA_ARGS__)}; \
        static_assert(std::size(variants) == std::variant_size_v<Type::variant>, "a name for each variant"); \
    };

/// An `enum class Color : uint8_t` whose values count up from 0: `LIGHTCONE_ENUM(Color, red, green)`.
#define LIGHTCONE_ENUM(Type, ...)                                                                      \
    template <>                                                                                        \
    struct lightcone::Enumerators<Type> {                                                              \
        static constexpr const char* name = #Type;                                                     \
        static constexpr const char* variants[] = {LIGHTCONE_EACH(LIGHTCONE_NAME, unused, __VA_ARGS__)}; \
    };
