// Every type of value, there and back. A file of its own: modules may have many.
#include "lightcone/module.hpp"

enum class Color : uint8_t { red, dark_green, blue };
LIGHTCONE_ENUM(Color, red, dark_green, blue)

struct Point {
    int32_t x, y;
    bool operator==(const Point&) const = default;
};
LIGHTCONE_TYPE(Point, x, y)

struct Shape : std::variant<lightcone::Unit, Point, std::string> {
    using variant::variant;
};
LIGHTCONE_SUM(Shape, nothing, point, text)

struct Numbers {
    uint32_t id;
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    int64_t i64;
    uint64_t u64;
    lightcone::i128 i128;
    lightcone::u128 u128;
    lightcone::i256 i256;
    lightcone::u256 u256;
    float f32;
    double f64;
    bool yes;
};
LIGHTCONE_TYPE(Numbers, id, i8, u8, i16, u16, i32, i64, u64, i128, u128, i256, u256, f32, f64, yes)
LIGHTCONE_TABLE(numbers, Numbers, Public, lightcone::primary_key(&Numbers::id));

struct Others {
    uint32_t id;
    std::string text;
    std::vector<uint8_t> bytes;
    std::vector<std::string> texts;
    std::optional<Point> maybe;
    std::optional<std::optional<uint32_t>> maybe_maybe;
    lightcone::Result<uint32_t, std::string> result;
    Color color;
    Shape shape;
    std::vector<Shape> shapes;
    lightcone::Identity identity;
    lightcone::ConnectionId connection;
    lightcone::Timestamp time;
    lightcone::TimeDuration duration;
    lightcone::ScheduleAt at;
    lightcone::Uuid uuid;
};
LIGHTCONE_TYPE(Others, id, text, bytes, texts, maybe, maybe_maybe, result, color, shape, shapes, identity, connection, time,
               duration, at, uuid)
LIGHTCONE_TABLE(others, Others, Public, lightcone::primary_key(&Others::id));

// What comes from a client goes back as it is: the test compares the bytes.
LIGHTCONE_PROCEDURE(Numbers, echo_numbers, lightcone::ProcedureContext& ctx, Numbers row) {
    ctx.with_transaction([&](lightcone::ReducerContext&) {
        numbers.insert(row);
        row = *numbers.by(&Numbers::id).find(row.id);
        return true;
    });
    return row;
}

LIGHTCONE_PROCEDURE(Others, echo_others, lightcone::ProcedureContext& ctx, Others row) {
    ctx.with_transaction([&](lightcone::ReducerContext&) {
        others.insert(row);
        row = *others.by(&Others::id).find(row.id);
        return true;
    });
    return row;
}
