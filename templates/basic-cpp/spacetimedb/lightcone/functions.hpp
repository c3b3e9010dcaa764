// Functions: reducers, views and procedures, and what they get.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "tables.hpp"

namespace lightcone {

inline std::string Identity::to_hex() const {
    std::string text;
    for (size_t word = 4; word-- != 0;) {
        for (int shift = 60; shift >= 0; shift -= 4) {
            text += "0123456789abcdef"[(value.words[word] >> shift) & 15];
        }
    }
    return text;
}

/// The identity of the database itself, which is also the sender of scheduled calls.
inline Identity database_identity() {
    Identity identity;
    host::lightcone_identity(reinterpret_cast<uint8_t*>(identity.value.words.data()));
    return identity;
}

/// All bytes of a source of the host; 0 has none.
inline std::vector<uint8_t> bytes_of(uint32_t source) {
    std::vector<uint8_t> bytes;
    if (source == 0) {
        return bytes;
    }
    uint32_t left = 0;
    check(static_cast<uint16_t>(host::lightcone_source_remaining(source, &left)), "reading bytes");
    bytes.resize(left);
    for (size_t at = 0;;) {
        size_t length = bytes.size() - at;
        auto result = host::lightcone_source_read(source, bytes.data() + at, &length);
        at += length;
        if (result < 0) {
            bytes.resize(at);
            return bytes;
        }
        check(static_cast<uint16_t>(result), "reading bytes");
    }
}

inline void write_to(uint32_t sink, const uint8_t* bytes, size_t length) {
    while (length != 0) {
        size_t taken = length;
        check(host::lightcone_sink_write(sink, bytes, &taken), "writing bytes");
        bytes += taken;
        length -= taken;
    }
}

/// Who calls a reducer or procedure, and when.
struct Context {
    Identity sender;
    /// Zero if the caller has no connection.
    ConnectionId connection_id;
    Timestamp timestamp;
};

struct ReducerContext : Context {
    /// The payload of the caller's token as JSON, if there is one.
    std::optional<std::string> jwt() const {
        uint32_t source = 0;
        check(host::lightcone_get_jwt(reinterpret_cast<const uint8_t*>(&connection_id.value), &source),
              "reading the token");
        if (source == 0) {
            return std::nullopt;
        }
        auto bytes = bytes_of(source);
        return std::string(bytes.begin(), bytes.end());
    }
};

struct ViewContext {
    Identity sender;
};

struct AnonymousViewContext {};

struct ProcedureContext : Context {
    /// Runs `body` in a transaction of its own, which is committed if it returns true.
    template <class Body>
    bool with_transaction(Body&& body) {
        int64_t now = 0;
        check(host::lightcone_start_transaction(&now), "starting a transaction");
        ReducerContext context;
        static_cast<Context&>(context) = *this;
        context.timestamp.micros = now;
        if (!body(context)) {
            check(host::lightcone_abort_transaction(), "ending a transaction");
            return false;
        }
        check(host::lightcone_commit_transaction(), "committing a transaction");
        return true;
    }
};

/// How a reducer ended: `return lightcone::ok();` or `return lightcone::error("why");`.
struct Outcome {
    std::optional<std::string> error;
};

inline Outcome ok() { return {}; }
inline Outcome error(std::string why) { return {std::move(why)}; }

/// Names of parameters, from the text of their declaration.
inline std::vector<std::string> parameter_names(std::string_view text) {
    std::vector<std::string> names;
    std::string name;
    int depth = 0;
    bool goes_on = false;
    for (char c : text) {
        bool is_letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c == ',' && depth == 0) {
            names.push_back(name);
            name.clear();
            goes_on = false;
        } else if (is_letter) {
            // The last word of a declaration is the name.
            name = goes_on ? name + c : std::string(1, c);
            goes_on = true;
        } else {
            depth += (c == '<' || c == '(') - (c == '>' || c == ')');
            goes_on = false;
        }
    }
    names.push_back(name);
    // The first is the context.
    names.erase(names.begin());
    return names;
}

/// When a reducer runs by itself.
enum class Lifecycle : uint8_t { init = 0, client_connected = 1, client_disconnected = 2, none = 255 };

struct ReducerEntry {
    std::string name;
    Lifecycle lifecycle;
    std::function<void(Writer&, Types&)> parameters;
    std::function<Outcome(ReducerContext&, Reader&)> call;
};

struct ProcedureEntry {
    std::string name;
    std::function<void(Writer&, Types&)> parameters, result;
    std::function<void(ProcedureContext&, Reader&, Writer&)> call;
};

struct ViewEntry {
    std::string name;
    bool is_anonymous;
    std::function<void(Writer&, Types&)> result;
    std::function<void(const Identity&, Writer&)> call;
};

/// All functions of the module, in the order of their ids.
struct Functions {
    std::vector<ReducerEntry> reducers;
    std::vector<ProcedureEntry> procedures;
    std::vector<ViewEntry> views;

    static Functions& all() {
        static Functions functions;
        return functions;
    }
};

/// The type of a function's parameters: a product, without the tag.
template <class... Parameters>
void write_parameters(Writer& out, Types& types, const std::vector<std::string>& names) {
    out.length(sizeof...(Parameters));
    size_t position = 0;
    ((out.name(names[position++]), write_type<std::remove_cvref_t<Parameters>>(out, types)), ...);
}

/// Calls a function with parameters that are read one after the other.
template <class... Parameters, class Call>
auto call_with(Reader& in, Call call) {
    // Braces keep the order.
    std::tuple<std::remove_cvref_t<Parameters>...> values{read<std::remove_cvref_t<Parameters>>(in)...};
    return std::apply(call, std::move(values));
}

template <class... Parameters>
bool add_reducer(const char* name, Lifecycle lifecycle, const char* declaration,
                 Outcome (*function)(ReducerContext&, Parameters...)) {
    Functions::all().reducers.push_back(
        {name, lifecycle,
         [names = parameter_names(declaration)](Writer& out, Types& types) {
             write_parameters<Parameters...>(out, types, names);
         },
         [function](ReducerContext& context, Reader& in) {
             return call_with<Parameters...>(
                 in, [&](auto&&... values) { return function(context, std::move(values)...); });
         }});
    return true;
}

template <class Returned, class... Parameters>
bool add_procedure(const char* name, const char* declaration,
                   Returned (*function)(ProcedureContext&, Parameters...)) {
    Functions::all().procedures.push_back(
        {name,
         [names = parameter_names(declaration)](Writer& out, Types& types) {
             write_parameters<Parameters...>(out, types, names);
         },
         [](Writer& out, Types& types) { write_type<Returned>(out, types); },
         [function](ProcedureContext& context, Reader& in, Writer& out) {
             write<Returned>(out, call_with<Parameters...>(in, [&](auto&&... values) {
                                 return function(context, std::move(values)...);
                             }));
         }});
    return true;
}

template <class Row>
void write_rows(Writer& out, const std::vector<Row>& rows) {
    write<std::vector<Row>>(out, rows);
}

template <class Row>
void write_rows(Writer& out, const std::optional<Row>& row) {
    out.length(row ? 1 : 0);
    if (row) {
        write<Row>(out, *row);
    }
}

template <class Returned, class ContextType>
bool add_view(const char* name, Returned (*function)(ContextType&)) {
    constexpr bool is_anonymous = std::is_same_v<ContextType, AnonymousViewContext>;
    Functions::all().views.push_back(
        {name, is_anonymous, [](Writer& out, Types& types) { write_type<Returned>(out, types); },
         [function](const Identity& sender, Writer& out) {
             ContextType context;
             if constexpr (!is_anonymous) {
                 context.sender = sender;
             }
             // The header: rows follow.
             out.tag(0);
             write_rows(out, function(context));
         }});
    return true;
}

}  // namespace lightcone

#define LIGHTCONE_REDUCER_OF(function, lifecycle, ...)                                            \
    static lightcone::Outcome function(__VA_ARGS__);                                              \
    [[maybe_unused]] static const bool function##_is_reducer = lightcone::add_reducer(            \
        #function, lightcone::Lifecycle::lifecycle, #__VA_ARGS__, &function);                     \
    static lightcone::Outcome function(__VA_ARGS__)

/// A reducer: `LIGHTCONE_REDUCER(add, lightcone::ReducerContext& ctx, std::string name) { …; return lightcone::ok(); }`.
#define LIGHTCONE_REDUCER(function, ...) LIGHTCONE_REDUCER_OF(function, none, __VA_ARGS__)
/// The reducer that runs when the database is made.
#define LIGHTCONE_INIT(function, ...) LIGHTCONE_REDUCER_OF(function, init, __VA_ARGS__)
/// The reducer that runs when a client comes; if it fails, the client is refused.
#define LIGHTCONE_CLIENT_CONNECTED(function, ...) LIGHTCONE_REDUCER_OF(function, client_connected, __VA_ARGS__)
/// The reducer that runs when a client has gone.
#define LIGHTCONE_CLIENT_DISCONNECTED(function, ...) \
    LIGHTCONE_REDUCER_OF(function, client_disconnected, __VA_ARGS__)

/// A procedure: `LIGHTCONE_PROCEDURE(uint32_t, twice, lightcone::ProcedureContext& ctx, uint32_t n) { return n * 2; }`.
#define LIGHTCONE_PROCEDURE(Returned, function, ...)                                         \
    static Returned function(__VA_ARGS__);                                                   \
    [[maybe_unused]] static const bool function##_is_procedure =                             \
        lightcone::add_procedure(#function, #__VA_ARGS__, &function);                        \
    static Returned function(__VA_ARGS__)

/// A view, a vector or optional of rows: `LIGHTCONE_VIEW(std::vector<Person>, mine, lightcone::ViewContext& ctx) { … }`.
#define LIGHTCONE_VIEW(Returned, function, ...)                                                  \
    static Returned function(__VA_ARGS__);                                                       \
    [[maybe_unused]] static const bool function##_is_view = lightcone::add_view(#function, &function); \
    static Returned function(__VA_ARGS__)
