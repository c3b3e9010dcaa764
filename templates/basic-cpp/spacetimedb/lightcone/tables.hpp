// Tables: what a module says of them, and how it reads and writes their rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "host.hpp"
#include "values.hpp"

namespace lightcone {

/// Who may read a table.
enum class Access : uint8_t { Public = 0, Private = 1 };

namespace errors {
constexpr uint16_t unique_already_exists = 12;
constexpr uint16_t no_such_row = 15;
}  // namespace errors

/// Ends the call if the host refused.
inline void check(uint16_t errno_, const char* what) {
    if (errno_ != 0) {
        panic(std::string(what) + " failed with error " + std::to_string(errno_));
    }
}

/// What is said of a table beyond its columns. Made by the functions below.
struct TableOption {
    enum class Kind { primary_key, unique, auto_inc, index, schedule, default_value, event };
    Kind kind;
    std::vector<uint16_t> columns;
    std::string text;
    Writer value;
    bool is_hash = false;
};

/// The position of a column.
template <class Row, class Value>
uint16_t column_of(Value Row::*wanted) {
    uint16_t position = 0, found = UINT16_MAX;
    Fields<Row>::fields([&](const char*, auto member) {
        if constexpr (std::is_same_v<decltype(member), Value Row::*>) {
            if (member == wanted) {
                found = position;
            }
        }
        position++;
    });
    if (found == UINT16_MAX) {
        panic("a column of a table is not among the fields of its LIGHTCONE_TYPE");
    }
    return found;
}

template <class Row>
std::vector<std::string> column_names() {
    std::vector<std::string> names;
    Fields<Row>::fields([&](const char* name, auto) { names.push_back(name); });
    return names;
}

/// The column that tells rows apart.
template <class Row, class Value>
TableOption primary_key(Value Row::*column) {
    return {TableOption::Kind::primary_key, {column_of(column)}, {}, {}};
}

/// No two rows have the same value there.
template <class Row, class Value>
TableOption unique(Value Row::*column) {
    return {TableOption::Kind::unique, {column_of(column)}, {}, {}};
}

/// A zero that is inserted becomes the next number.
template <class Row, class Value>
TableOption auto_inc(Value Row::*column) {
    static_assert(std::is_integral_v<Value> || sizeof(Value) == 16, "only integers count");
    return {TableOption::Kind::auto_inc, {column_of(column)}, {}, {}};
}

/// An ordered index over one or more columns, in this order.
template <class Row, class... Values>
TableOption index(Values Row::*... columns) {
    return {TableOption::Kind::index, {column_of(columns)...}, {}, {}};
}

/// An index for equal values only.
template <class Row, class... Values>
TableOption hash_index(Values Row::*... columns) {
    TableOption option = index(columns...);
    option.is_hash = true;
    return option;
}

/// The table's rows run this reducer or procedure, which takes one of them, at the time in this column.
template <class Row>
TableOption schedule(ScheduleAt Row::*column, std::string function) {
    return {TableOption::Kind::schedule, {column_of(column)}, std::move(function), {}};
}

/// What rows that are there have in a column that is added.
template <class Row, class Value>
TableOption default_value(Value Row::*column, const std::type_identity_t<Value>& value) {
    TableOption option{TableOption::Kind::default_value, {column_of(column)}, {}, {}};
    write<Value>(option.value, value);
    return option;
}

/// Its rows are there for subscribers of the transaction only.
inline TableOption event() {
    return {TableOption::Kind::event, {}, {}, {}};
}

/// What the definition of a module needs of a table.
class TableBase {
  public:
    std::string name;
    Access access;
    std::vector<TableOption> options;

    TableBase(std::string name, Access access, std::vector<TableOption> options)
        : name(std::move(name)), access(access), options(std::move(options)) {
        all().push_back(this);
    }
    TableBase(const TableBase&) = delete;

    static std::vector<TableBase*>& all() {
        static std::vector<TableBase*> tables;
        return tables;
    }

    virtual uint32_t row_type(Types& types) const = 0;
    virtual std::vector<std::string> columns() const = 0;

    /// The name of the index over these columns.
    std::string index_name(const std::vector<uint16_t>& positions, bool is_hash) const {
        auto names = columns();
        std::string text = name;
        for (auto position : positions) {
            text += "_" + names[position];
        }
        return text + (is_hash ? "_idx_hash" : "_idx_btree");
    }

    bool has(TableOption::Kind kind, uint16_t column) const {
        return std::any_of(options.begin(), options.end(), [&](const TableOption& option) {
            return option.kind == kind && option.columns.size() == 1 && option.columns[0] == column;
        });
    }

    uint32_t id() {
        if (!id_) {
            uint32_t id = 0;
            check(host::lightcone_table_id_from_name(name.data(), name.size(), &id), "looking a table up");
            id_ = id;
        }
        return *id_;
    }

    uint32_t index_id(const std::vector<uint16_t>& positions) {
        auto known = index_ids_.find(positions);
        if (known != index_ids_.end()) {
            return known->second;
        }
        auto is_hash = std::any_of(options.begin(), options.end(), [&](const TableOption& option) {
            return option.is_hash && option.columns == positions;
        });
        auto text = index_name(positions, is_hash);
        uint32_t id = 0;
        if (host::lightcone_index_id_from_name(text.data(), text.size(), &id) != 0) {
            panic("the table has no index " + text);
        }
        index_ids_.emplace(positions, id);
        return id;
    }

  private:
    std::optional<uint32_t> id_;
    std::map<std::vector<uint16_t>, uint32_t> index_ids_;
};

/// All rows of an iterator of the host.
template <class Row>
std::vector<Row> rows_of(uint32_t iterator) {
    std::vector<Row> rows;
    std::vector<uint8_t> buffer(65536);
    for (;;) {
        size_t length = buffer.size();
        auto result = host::lightcone_row_iter_advance(iterator, buffer.data(), &length);
        if (result == 11) {
            buffer.resize(length);
            continue;
        }
        if (result > 0) {
            check(static_cast<uint16_t>(result), "reading rows");
        }
        Reader in(buffer);
        in.end = in.at + length;
        while (!in.is_empty()) {
            rows.push_back(read<Row>(in));
        }
        if (result < 0) {
            return rows;
        }
    }
}

/// One end of a range.
template <class Value>
struct Bound {
    enum class Kind : uint8_t { included = 0, excluded = 1, unbounded = 2 };
    Kind kind = Kind::unbounded;
    Value value{};
};

/// Values between two ends: the last argument of a filter.
template <class Value>
struct Range {
    Bound<Value> from, to;
    /// From one value, and to another that is not in it.
    static Range between(Value from, Value to) {
        return {{Bound<Value>::Kind::included, from}, {Bound<Value>::Kind::excluded, to}};
    }
    static Range at_least(Value from) { return {{Bound<Value>::Kind::included, from}, {}}; }
    static Range below(Value to) { return {{}, {Bound<Value>::Kind::excluded, to}}; }
};

/// An index of a table by its columns. Values for the first of them are enough; the last one given may be a `Range`.
template <class Row, class... Columns>
class Index {
  public:
    Index(TableBase& table, std::vector<uint16_t> positions)
        : table_(table), positions_(std::move(positions)) {}

    template <class... Given>
    std::vector<Row> filter(const Given&... given) {
        uint32_t iterator = 0;
        search(host::lightcone_index_scan_point, host::lightcone_index_scan_range, &iterator, given...);
        return rows_of<Row>(iterator);
    }

    /// Deletes what `filter` finds, and says how many rows that were.
    template <class... Given>
    uint32_t erase(const Given&... given) {
        uint32_t count = 0;
        search(host::lightcone_delete_by_point, host::lightcone_delete_by_range, &count, given...);
        return count;
    }

    /// The row with these values, if there is one.
    std::optional<Row> find(const std::type_identity_t<Columns>&... given) {
        auto rows = filter(given...);
        if (rows.empty()) {
            return std::nullopt;
        }
        return std::move(rows.front());
    }

  private:
    template <class T>
    struct IsRange : std::false_type {};
    template <class T>
    struct IsRange<Range<T>> : std::true_type {};

    template <class Point, class Scan, class... Given>
    void search(Point point, Scan scan, uint32_t* out, const Given&... given) {
        static_assert(sizeof...(Given) != 0 && sizeof...(Given) <= sizeof...(Columns),
                      "a value for each column, or for the first of them");
        constexpr bool is_range = (IsRange<Given>::value || ...);
        auto index = table_.index_id(positions_);
        Writer prefix, from, to;
        write_keys<0>(prefix, from, to, sizeof...(Given) < sizeof...(Columns), given...);
        if (!is_range && sizeof...(Given) == sizeof...(Columns)) {
            check(point(index, address(prefix), prefix.bytes.size(), out), "looking rows up");
            return;
        }
        check(scan(index, address(prefix), prefix.bytes.size(), sizeof...(Given) - 1,
                   address(from), from.bytes.size(), address(to), to.bytes.size(), out),
              "looking rows up");
    }

    /// Addresses of no bytes must not be null.
    static const uint8_t* address(const Writer& writer) {
        static const uint8_t nothing = 0;
        return writer.bytes.empty() ? &nothing : writer.bytes.data();
    }

    template <size_t Position, class First, class... Rest>
    static void write_keys(Writer& prefix, Writer& from, Writer& to, bool is_part, const First& first,
                           const Rest&... rest) {
        using Column = std::tuple_element_t<Position, std::tuple<Columns...>>;
        if constexpr (IsRange<First>::value) {
            static_assert(sizeof...(Rest) == 0, "a range can only be the last");
            write_bound<Column>(from, first.from);
            write_bound<Column>(to, first.to);
        } else if (sizeof...(Rest) == 0 && is_part) {
            Bound<Column> bound{Bound<Column>::Kind::included, Column(first)};
            write_bound<Column>(from, bound);
            write_bound<Column>(to, bound);
        } else {
            write<Column>(prefix, Column(first));
        }
        if constexpr (sizeof...(Rest) != 0) {
            write_keys<Position + 1>(prefix, from, to, is_part, rest...);
        }
    }

    template <class Column, class Value>
    static void write_bound(Writer& out, const Bound<Value>& bound) {
        out.tag(static_cast<uint8_t>(bound.kind));
        if (bound.kind != Bound<Value>::Kind::unbounded) {
            write<Column>(out, Column(bound.value));
        }
    }

    TableBase& table_;
    std::vector<uint16_t> positions_;
};

/// A table of the module; made by `LIGHTCONE_TABLE`.
template <class Row>
class Table : public TableBase {
  public:
    using TableBase::TableBase;

    uint32_t row_type(Types& types) const override { return Codec<Row>::place(types); }
    std::vector<std::string> columns() const override { return column_names<Row>(); }

    uint64_t count() {
        uint64_t count = 0;
        check(host::lightcone_table_row_count(id(), &count), "counting rows");
        return count;
    }

    /// All rows.
    std::vector<Row> rows() {
        uint32_t iterator = 0;
        check(host::lightcone_table_scan(id(), &iterator), "reading a table");
        return rows_of<Row>(iterator);
    }

    /// Inserts a row and gives it back with its new numbers. A row that breaks a unique column ends the call.
    Row insert(Row row) {
        check(insert_into(row), "inserting a row");
        return row;
    }

    /// The same; nothing if the row breaks a unique column.
    std::optional<Row> try_insert(Row row) {
        auto errno_ = insert_into(row);
        if (errno_ == errors::unique_already_exists) {
            return std::nullopt;
        }
        check(errno_, "inserting a row");
        return row;
    }

    /// Replaces the row that has the same value in this unique column.
    template <class Value>
    Row update(Value Row::*column, Row row) {
        Writer out;
        write<Row>(out, row);
        size_t length = out.bytes.size();
        auto index = index_id({column_of(column)});
        check(host::lightcone_update(id(), index, out.bytes.data(), &length), "updating a row");
        take_generated(row, out, length);
        return row;
    }

    /// Deletes a row that is equal in all columns; false if there is none.
    bool erase(const Row& row) {
        Writer out;
        out.length(1);
        write<Row>(out, row);
        uint32_t count = 0;
        check(host::lightcone_delete_all_by_eq(id(), out.bytes.data(), out.bytes.size(), &count),
              "deleting a row");
        return count != 0;
    }

    /// Deletes all rows, and says how many that were.
    uint64_t clear() {
        uint64_t count = 0;
        check(host::lightcone_clear(id(), &count), "clearing a table");
        return count;
    }

    /// The index over these columns.
    template <class... Values>
    Index<Row, Values...> by(Values Row::*... columns) {
        return {*this, {column_of(columns)...}};
    }

  private:
    uint16_t insert_into(Row& row) {
        Writer out;
        write<Row>(out, row);
        // Rows without columns have an address, too.
        out.bytes.reserve(1);
        size_t length = out.bytes.size();
        auto errno_ = host::lightcone_insert(id(), out.bytes.data(), &length);
        if (errno_ == 0) {
            take_generated(row, out, length);
        }
        return errno_;
    }

    /// The host has written the numbers that it drew over the start of the row, in the order of the columns.
    void take_generated(Row& row, const Writer& out, size_t length) {
        Reader in(out.bytes);
        in.end = in.at + length;
        uint16_t position = 0;
        Fields<Row>::fields([&](const char*, auto member) {
            using Value = std::remove_cvref_t<decltype(row.*member)>;
            if constexpr (std::is_integral_v<Value> || std::is_same_v<Value, i128> ||
                          std::is_same_v<Value, u128>) {
                if (row.*member == 0 && has(TableOption::Kind::auto_inc, position) && !in.is_empty()) {
                    row.*member = read<Value>(in);
                }
            }
            position++;
        });
    }
};

}  // namespace lightcone

/// A table: `LIGHTCONE_TABLE(person, Person, Public, lightcone::primary_key(&Person::id), …)`.
#define LIGHTCONE_TABLE(accessor, Row, access, ...)                                             \
    inline lightcone::Table<Row> accessor {                                                     \
        #accessor, lightcone::Access::access, std::vector<lightcone::TableOption> { __VA_ARGS__ } \
    }
