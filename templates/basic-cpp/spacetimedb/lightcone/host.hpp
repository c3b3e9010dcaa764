// The functions of the host, and what the C library would ask of an operating system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lightcone::host {

extern "C" {
#define LIGHTCONE_IMPORT(version, function) \
    __attribute__((import_module("spacetime_10." version), import_name(function)))

LIGHTCONE_IMPORT("0", "table_id_from_name")
uint16_t lightcone_table_id_from_name(const char* name, size_t length, uint32_t* out);
LIGHTCONE_IMPORT("0", "index_id_from_name")
uint16_t lightcone_index_id_from_name(const char* name, size_t length, uint32_t* out);
LIGHTCONE_IMPORT("0", "datastore_table_row_count")
uint16_t lightcone_table_row_count(uint32_t table, uint64_t* out);
LIGHTCONE_IMPORT("0", "datastore_table_scan_bsatn")
uint16_t lightcone_table_scan(uint32_t table, uint32_t* out);
LIGHTCONE_IMPORT("0", "datastore_index_scan_range_bsatn")
uint16_t lightcone_index_scan_range(uint32_t index, const uint8_t* prefix, size_t prefix_length,
                                    uint32_t prefix_elements, const uint8_t* start,
                                    size_t start_length, const uint8_t* end, size_t end_length,
                                    uint32_t* out);
LIGHTCONE_IMPORT("0", "datastore_delete_by_index_scan_range_bsatn")
uint16_t lightcone_delete_by_range(uint32_t index, const uint8_t* prefix, size_t prefix_length,
                                   uint32_t prefix_elements, const uint8_t* start,
                                   size_t start_length, const uint8_t* end, size_t end_length,
                                   uint32_t* out);
LIGHTCONE_IMPORT("0", "datastore_delete_all_by_eq_bsatn")
uint16_t lightcone_delete_all_by_eq(uint32_t table, const uint8_t* rows, size_t length,
                                    uint32_t* out);
LIGHTCONE_IMPORT("0", "row_iter_bsatn_advance")
int16_t lightcone_row_iter_advance(uint32_t iterator, uint8_t* buffer, size_t* length);
LIGHTCONE_IMPORT("0", "datastore_insert_bsatn")
uint16_t lightcone_insert(uint32_t table, uint8_t* row, size_t* length);
LIGHTCONE_IMPORT("0", "datastore_update_bsatn")
uint16_t lightcone_update(uint32_t table, uint32_t index, uint8_t* row, size_t* length);
LIGHTCONE_IMPORT("0", "bytes_sink_write")
uint16_t lightcone_sink_write(uint32_t sink, const uint8_t* bytes, size_t* length);
LIGHTCONE_IMPORT("0", "bytes_source_read")
int16_t lightcone_source_read(uint32_t source, uint8_t* buffer, size_t* length);
LIGHTCONE_IMPORT("0", "console_log")
void lightcone_console_log(uint32_t level, const char* target, size_t target_length,
                           const char* file, size_t file_length, uint32_t line,
                           const char* message, size_t message_length);
LIGHTCONE_IMPORT("0", "identity")
void lightcone_identity(uint8_t* out);
LIGHTCONE_IMPORT("1", "bytes_source_remaining_length")
int16_t lightcone_source_remaining(uint32_t source, uint32_t* out);
LIGHTCONE_IMPORT("2", "get_jwt")
uint16_t lightcone_get_jwt(const uint8_t* connection, uint32_t* out);
LIGHTCONE_IMPORT("3", "procedure_start_mut_tx")
uint16_t lightcone_start_transaction(int64_t* out);
LIGHTCONE_IMPORT("3", "procedure_commit_mut_tx")
uint16_t lightcone_commit_transaction();
LIGHTCONE_IMPORT("3", "procedure_abort_mut_tx")
uint16_t lightcone_abort_transaction();
LIGHTCONE_IMPORT("4", "datastore_index_scan_point_bsatn")
uint16_t lightcone_index_scan_point(uint32_t index, const uint8_t* point, size_t length,
                                    uint32_t* out);
LIGHTCONE_IMPORT("4", "datastore_delete_by_index_scan_point_bsatn")
uint16_t lightcone_delete_by_point(uint32_t index, const uint8_t* point, size_t length,
                                   uint32_t* out);
LIGHTCONE_IMPORT("5", "datastore_clear")
uint16_t lightcone_clear(uint32_t table, uint64_t* out);
#undef LIGHTCONE_IMPORT
}

}  // namespace lightcone::host

namespace lightcone {

/// Levels of records in the module's log.
enum class Level : uint32_t { error = 0, warn = 1, info = 2, debug = 3, trace = 4, panic = 101 };

/// Writes a record to the module's log.
inline void log(Level level, std::string_view message, const char* file = __builtin_FILE(),
                uint32_t line = __builtin_LINE()) {
    std::string_view name = file;
    host::lightcone_console_log(static_cast<uint32_t>(level), nullptr, 0, name.data(), name.size(),
                                line, message.data(), message.size());
}

inline void log_error(std::string_view message, const char* file = __builtin_FILE(),
                      uint32_t line = __builtin_LINE()) {
    log(Level::error, message, file, line);
}

inline void log_warn(std::string_view message, const char* file = __builtin_FILE(),
                     uint32_t line = __builtin_LINE()) {
    log(Level::warn, message, file, line);
}

inline void log_info(std::string_view message, const char* file = __builtin_FILE(),
                     uint32_t line = __builtin_LINE()) {
    log(Level::info, message, file, line);
}

[[noreturn]] inline void panic(std::string_view message) {
    log(Level::panic, message);
    __builtin_trap();
}

}  // namespace lightcone

// The C library asks WASI for files, clocks and arguments. A module has none of them, and its host has no WASI. What is
// printed goes to the log; all else says that it is not there.
#ifdef __wasi__
#define LIGHTCONE_NO_WASI(function, ...)                                              \
    extern "C" __attribute__((weak)) int32_t __imported_wasi_snapshot_preview1_##function( \
        __VA_ARGS__) {                                                                \
        return 52; /* ENOSYS */                                                       \
    }
LIGHTCONE_NO_WASI(args_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(args_sizes_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(clock_res_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(clock_time_get, int32_t, int64_t, int32_t)
LIGHTCONE_NO_WASI(environ_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(environ_sizes_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_close, int32_t)
LIGHTCONE_NO_WASI(fd_fdstat_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_fdstat_set_flags, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_filestat_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_prestat_dir_name, int32_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_prestat_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_read, int32_t, int32_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(fd_seek, int32_t, int64_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(path_filestat_get, int32_t, int32_t, int32_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(path_open, int32_t, int32_t, int32_t, int32_t, int32_t, int64_t, int64_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(poll_oneoff, int32_t, int32_t, int32_t, int32_t)
LIGHTCONE_NO_WASI(random_get, int32_t, int32_t)
LIGHTCONE_NO_WASI(sched_yield)
#undef LIGHTCONE_NO_WASI

extern "C" __attribute__((weak, noreturn)) void __imported_wasi_snapshot_preview1_proc_exit(int32_t) {
    lightcone::panic("the module asked to exit");
}

extern "C" __attribute__((weak)) int32_t __imported_wasi_snapshot_preview1_fd_write(
    int32_t, int32_t pieces, int32_t count, int32_t written) {
    struct Piece {
        const char* data;
        size_t length;
    };
    auto piece = reinterpret_cast<const Piece*>(static_cast<uintptr_t>(pieces));
    size_t total = 0;
    for (int32_t left = count; left != 0; left--, piece++) {
        std::string_view text(piece->data, piece->length);
        total += text.size();
        while (!text.empty() && text.back() == '\n') {
            text.remove_suffix(1);
        }
        if (!text.empty()) {
            lightcone::log_info(text, "stdout", 0);
        }
    }
    *reinterpret_cast<size_t*>(static_cast<uintptr_t>(written)) = total;
    return 0;
}
#endif
