// A binding for modules in C++: include this, say what the tables and functions are, and `spacetime build` does the rest.
// It needs clang for WebAssembly with a C++ library, without exceptions; nothing here depends on another package.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions.hpp"

namespace lightcone {

/// The definition of the module: `RawModuleDefV10`.
class Definition {
  public:
    std::vector<uint8_t> bytes() {
        // What mentions types comes first, so that all types are known.
        auto tables = list(TableBase::all(), [&](Writer& out, TableBase* table) { this->table(out, *table); });
        auto& functions = Functions::all();
        auto reducers = list(functions.reducers, [&](Writer& out, const ReducerEntry& reducer) {
            out.text(reducer.name);
            reducer.parameters(out, types_);
            visibility(out, reducer.lifecycle != Lifecycle::none || is_scheduled(reducer.name));
            write_unit_type(out);
            out.tag(4);
        });
        auto procedures = list(functions.procedures, [&](Writer& out, const ProcedureEntry& procedure) {
            out.text(procedure.name);
            procedure.parameters(out, types_);
            procedure.result(out, types_);
            visibility(out, is_scheduled(procedure.name));
        });
        uint32_t counts[2] = {0, 0};
        auto views = list(functions.views, [&](Writer& out, const ViewEntry& view) {
            out.text(view.name);
            out.number(counts[view.is_anonymous]++);
            out.tag(1);
            out.tag(view.is_anonymous);
            out.length(0);
            view.result(out, types_);
        });
        auto schedules = schedule_list();
        auto lifecycle = lifecycle_list();

        Writer out;
        // Version 10, with so many sections.
        out.tag(2);
        out.length(8);
        section(out, 0, list(types_.entries, [](Writer& out, const Types::Entry& entry) {
                    out.raw(entry.type.bytes.data(), entry.type.bytes.size());
                }));
        section(out, 1, named_types());
        section(out, 2, tables);
        section(out, 3, reducers);
        section(out, 4, procedures);
        section(out, 5, views);
        section(out, 6, schedules);
        section(out, 7, lifecycle);
        return std::move(out.bytes);
    }

  private:
    using Kind = TableOption::Kind;
    Types types_;

    template <class Items, class Each>
    static Writer list(const Items& items, Each each) {
        Writer out;
        out.length(items.size());
        for (const auto& item : items) {
            each(out, item);
        }
        return out;
    }

    static void section(Writer& out, uint8_t tag, const Writer& content) {
        out.tag(tag);
        out.raw(content.bytes.data(), content.bytes.size());
    }

    static void visibility(Writer& out, bool is_private) { out.tag(is_private ? 0 : 1); }

    static void columns(Writer& out, const std::vector<uint16_t>& columns) {
        out.length(columns.size());
        for (auto column : columns) {
            out.number(column);
        }
    }

    Writer named_types() const {
        uint32_t place = 0;
        return list(types_.entries, [&](Writer& out, const Types::Entry& entry) {
            // No scope; the order of fields is as written.
            out.length(0);
            out.text(entry.name);
            out.number(place++);
            out.tag(1);
        });
    }

    void table(Writer& out, TableBase& table) {
        out.text(table.name);
        out.number(table.row_type(types_));
        auto is_unique = [](const TableOption& option) {
            return option.kind == Kind::unique || option.kind == Kind::primary_key;
        };
        std::vector<uint16_t> key;
        std::vector<TableOption> uniques, indexes, sequences, defaults;
        bool is_event = false;
        for (const auto& option : table.options) {
            if (option.kind == Kind::primary_key) {
                key = option.columns;
            }
            if (is_unique(option) && !contains(uniques, option.columns)) {
                uniques.push_back(option);
            }
            if (option.kind == Kind::index) {
                indexes.push_back(option);
            } else if (option.kind == Kind::auto_inc) {
                sequences.push_back(option);
            } else if (option.kind == Kind::default_value) {
                defaults.push_back(option);
            }
            is_event |= option.kind == Kind::event;
        }
        for (const auto& unique : uniques) {
            if (!contains(indexes, unique.columns)) {
                indexes.push_back(unique);
            }
        }
        columns(out, key);
        auto names = table.columns();
        write_list(out, indexes, [&](const TableOption& index) {
            out.name(table.index_name(index.columns, index.is_hash));
            std::string accessor;
            for (auto column : index.columns) {
                accessor += (accessor.empty() ? "" : "_") + names[column];
            }
            out.name(accessor);
            out.tag(index.is_hash ? 1 : 0);
            columns(out, index.columns);
        });
        write_list(out, uniques, [&](const TableOption& unique) {
            out.tag(1);
            out.tag(0);
            columns(out, unique.columns);
        });
        write_list(out, sequences, [&](const TableOption& sequence) {
            out.tag(1);
            out.number(sequence.columns[0]);
            // Neither start nor bounds; one step at a time.
            out.tag(1);
            out.tag(1);
            out.tag(1);
            out.number(i128{1});
        });
        out.tag(1);
        out.tag(static_cast<uint8_t>(table.access));
        write_list(out, defaults, [&](const TableOption& value) {
            out.number(value.columns[0]);
            out.length(value.value.bytes.size());
            out.raw(value.value.bytes.data(), value.value.bytes.size());
        });
        out.tag(is_event);
    }

    template <class Items, class Each>
    static void write_list(Writer& out, const Items& items, Each each) {
        out.length(items.size());
        for (const auto& item : items) {
            each(item);
        }
    }

    static bool contains(const std::vector<TableOption>& options, const std::vector<uint16_t>& columns) {
        return std::any_of(options.begin(), options.end(),
                           [&](const TableOption& option) { return option.columns == columns; });
    }

    static bool is_scheduled(const std::string& function) {
        for (auto table : TableBase::all()) {
            for (const auto& option : table->options) {
                if (option.kind == Kind::schedule && option.text == function) {
                    return true;
                }
            }
        }
        return false;
    }

    static Writer schedule_list() {
        Writer entries;
        uint32_t count = 0;
        for (auto table : TableBase::all()) {
            for (const auto& option : table->options) {
                if (option.kind == Kind::schedule) {
                    entries.tag(1);
                    entries.text(table->name);
                    entries.number(option.columns[0]);
                    entries.text(option.text);
                    count++;
                }
            }
        }
        return counted(count, entries);
    }

    static Writer lifecycle_list() {
        Writer entries;
        uint32_t count = 0;
        for (const auto& reducer : Functions::all().reducers) {
            if (reducer.lifecycle != Lifecycle::none) {
                entries.tag(static_cast<uint8_t>(reducer.lifecycle));
                entries.text(reducer.name);
                count++;
            }
        }
        return counted(count, entries);
    }

    static Writer counted(uint32_t count, const Writer& entries) {
        Writer out;
        out.number(count);
        out.raw(entries.bytes.data(), entries.bytes.size());
        return out;
    }
};

template <class ContextType>
ContextType context_of(uint64_t sender_0, uint64_t sender_1, uint64_t sender_2, uint64_t sender_3,
                       uint64_t connection_0, uint64_t connection_1, int64_t timestamp) {
    ContextType context;
    context.sender.value.words = {sender_0, sender_1, sender_2, sender_3};
    context.connection_id.value = static_cast<u128>(connection_1) << 64 | connection_0;
    context.timestamp.micros = timestamp;
    return context;
}

/// The view with this number among those of its kind.
inline int32_t call_view(uint32_t id, bool is_anonymous, const Identity& sender, uint32_t sink) {
    for (const auto& view : Functions::all().views) {
        if (view.is_anonymous == is_anonymous && id-- == 0) {
            Writer out;
            view.call(sender, out);
            write_to(sink, out.bytes.data(), out.bytes.size());
            return 2;
        }
    }
    return -1;
}

}  // namespace lightcone

// ---- What the host calls -------------------------------------------------------------------------------------------

#define LIGHTCONE_EXPORT(name) extern "C" __attribute__((weak, used, export_name(name)))

extern "C" void __wasm_call_ctors();

LIGHTCONE_EXPORT("_initialize") void lightcone_initialize() { __wasm_call_ctors(); }

LIGHTCONE_EXPORT("__describe_module__") void lightcone_describe_module(uint32_t sink) {
    auto bytes = lightcone::Definition().bytes();
    lightcone::write_to(sink, bytes.data(), bytes.size());
}

LIGHTCONE_EXPORT("__call_reducer__")
int32_t lightcone_call_reducer(uint32_t id, uint64_t sender_0, uint64_t sender_1, uint64_t sender_2,
                               uint64_t sender_3, uint64_t connection_0, uint64_t connection_1,
                               int64_t timestamp, uint32_t arguments, uint32_t error_sink) {
    auto& reducers = lightcone::Functions::all().reducers;
    if (id >= reducers.size()) {
        return -1;
    }
    auto context = lightcone::context_of<lightcone::ReducerContext>(
        sender_0, sender_1, sender_2, sender_3, connection_0, connection_1, timestamp);
    auto bytes = lightcone::bytes_of(arguments);
    lightcone::Reader in(bytes);
    auto outcome = reducers[id].call(context, in);
    if (!outcome.error) {
        return 0;
    }
    auto text = reinterpret_cast<const uint8_t*>(outcome.error->data());
    lightcone::write_to(error_sink, text, outcome.error->size());
    return 1;
}

LIGHTCONE_EXPORT("__call_procedure__")
int32_t lightcone_call_procedure(uint32_t id, uint64_t sender_0, uint64_t sender_1, uint64_t sender_2,
                                 uint64_t sender_3, uint64_t connection_0, uint64_t connection_1,
                                 int64_t timestamp, uint32_t arguments, uint32_t sink) {
    auto& procedures = lightcone::Functions::all().procedures;
    if (id >= procedures.size()) {
        return -1;
    }
    auto context = lightcone::context_of<lightcone::ProcedureContext>(
        sender_0, sender_1, sender_2, sender_3, connection_0, connection_1, timestamp);
    auto bytes = lightcone::bytes_of(arguments);
    lightcone::Reader in(bytes);
    lightcone::Writer out;
    procedures[id].call(context, in, out);
    lightcone::write_to(sink, out.bytes.data(), out.bytes.size());
    return 0;
}

LIGHTCONE_EXPORT("__call_view__")
int32_t lightcone_call_view(uint32_t id, uint64_t sender_0, uint64_t sender_1, uint64_t sender_2,
                            uint64_t sender_3, uint32_t, uint32_t sink) {
    lightcone::Identity sender;
    sender.value.words = {sender_0, sender_1, sender_2, sender_3};
    return lightcone::call_view(id, false, sender, sink);
}

LIGHTCONE_EXPORT("__call_view_anon__")
int32_t lightcone_call_view_anon(uint32_t id, uint32_t, uint32_t sink) {
    return lightcone::call_view(id, true, {}, sink);
}

#undef LIGHTCONE_EXPORT
