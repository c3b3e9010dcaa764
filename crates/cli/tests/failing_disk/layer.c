// A disk that fails, for one process: below a directory it notes what has not been synced, fails syncs, and fills up.
//
// Loaded with LD_PRELOAD into the server. Its system calls for files are trapped with seccomp, since not all of them go through
// the C library, and done here. Nothing is ever synced: a sync takes some time and notes that it was one, so what it makes durable is
// what mod.rs does not undo. Linux on x86-64 only.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// What the test and the layer tell each other; mod.rs has the same.
struct control {
    _Atomic int64_t growth_left;  // bytes that files may grow yet; then ENOSPC
    _Atomic int64_t syncs_left;   // syncs of segments of logs that succeed yet; then one EIO
    _Atomic int64_t sync_us_max;  // how long a sync takes at most, in microseconds
    _Atomic int64_t syncs_failed;
    _Atomic int64_t writes_refused;
};

enum kind { WRITTEN = 1, CUT, SYNCED, SYNC_FAILED, CREATED, RENAMED, REMOVED, DIRECTORY_MADE, DIRECTORY_SYNCED };

// Followed by `first_bytes` and `second_bytes`.
struct entry {
    uint64_t kind, number, inode, position, bytes, length_before, first_bytes, second_bytes;
};

static char below[PATH_MAX], side[PATH_MAX - 64];
static struct control *control;
static int journal = -1;
static uint64_t entries;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static char piece[64 * 1024];

// The only place whose system calls are not trapped.
long failing_disk_call(long number, long a, long b, long c, long d, long e, long f);
extern char failing_disk_return[];
__asm__(".text\n"
        ".hidden failing_disk_call\n.globl failing_disk_call\n"
        ".hidden failing_disk_return\n.globl failing_disk_return\n"
        "failing_disk_call:\n"
        "  mov %rdi, %rax\n  mov %rsi, %rdi\n  mov %rdx, %rsi\n  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n  mov %r9, %r8\n  mov 8(%rsp), %r9\n  syscall\n"
        "failing_disk_return:\n  ret\n");
#define CALL(number, a, b, c) failing_disk_call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static void fail(const char *what) {
    fprintf(stderr, "the layer of the failing disk: %s: %s\n", what, strerror(errno));
    abort();
}

static void take(void) {
    while (atomic_flag_test_and_set(&lock)) {
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
}

static void give(void) { atomic_flag_clear(&lock); }

static void note_bytes(const void *bytes, size_t length) {
    for (const char *at = bytes; length > 0;) {
        long written = CALL(SYS_write, journal, at, length);
        if (written <= 0) fail("its journal cannot be written");
        at += written;
        length -= written;
    }
}

// A process that is killed in the middle leaves part of an entry, for something that was not done yet.
static void note(struct entry entry, const char *first, const char *second) {
    entry.number = ++entries;
    entry.first_bytes = first ? strlen(first) : 0;
    if (second) entry.second_bytes = strlen(second);
    note_bytes(&entry, sizeof entry);
    if (first) note_bytes(first, entry.first_bytes);
    if (second) note_bytes(second, entry.second_bytes);
}

// The old bytes of a range go behind the entry.
static void note_range(struct entry entry, int fd, uint64_t start, uint64_t end) {
    entry.second_bytes = end > start ? end - start : 0;
    entry.number = ++entries;
    note_bytes(&entry, sizeof entry);
    while (start < end) {
        size_t wanted = end - start < sizeof piece ? end - start : sizeof piece;
        // The file may be open for writing only.
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int reader = open(name, O_RDONLY | O_CLOEXEC);
        ssize_t read = pread(reader, piece, wanted, start);
        close(reader);
        if (read <= 0) fail("the old bytes of a file cannot be read");
        note_bytes(piece, read);
        start += read;
    }
}

static int is_below(const char *path) {
    size_t length = strlen(below);
    return strncmp(path, below, length) == 0 && path[length] == '/';
}

static int path_of(int fd, char *path) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

// The path that a call names, if it is below the directory.
static int named(int directory, const char *name, char *path) {
    if (name[0] == '/' || directory == AT_FDCWD) {
        snprintf(path, PATH_MAX, "%s", name);
        return is_below(path);
    }
    char parent[PATH_MAX];
    if (!path_of(directory, parent) && strcmp(parent, below) != 0) return 0;
    return snprintf(path, PATH_MAX, "%s/%s", parent, name) < PATH_MAX;
}

// Keeps what loses its name.
static void save(const char *path, uint64_t number) {
    char saved[PATH_MAX];
    snprintf(saved, sizeof saved, "%s/saved/%lu", side, number);
    (void)!link(path, saved);
}

static long do_write(long number, int fd, const struct iovec *parts, int count, long position) {
    struct stat found;
    char path[PATH_MAX];
    int is_plain = number == SYS_write || number == SYS_writev;
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || !path_of(fd, path)) {
        return is_plain ? CALL(SYS_writev, fd, parts, count)
                        : failing_disk_call(SYS_pwritev, fd, (long)parts, count, position, 0, 0);
    }
    take();
    fstat(fd, &found);
    if (is_plain)
        position = fcntl(fd, F_GETFL) & O_APPEND ? found.st_size : lseek(fd, 0, SEEK_CUR);
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    int64_t before = found.st_size > position ? found.st_size : position;
    int64_t grows = position + bytes > before ? position + bytes - before : 0;
    int64_t over = grows - atomic_load(&control->growth_left);
    long result = -ENOSPC;
    static struct iovec taken[1024];
    if (over > 0) {
        atomic_fetch_add(&control->writes_refused, 1);
        bytes -= over;
        grows -= over;
    }
    if (bytes > 0 && count <= 1024) {
        int used = 0;
        for (int64_t left = bytes; left > 0; used++) {
            taken[used] = parts[used];
            if ((int64_t)taken[used].iov_len > left) taken[used].iov_len = left;
            left -= taken[used].iov_len;
        }
        if (atomic_load(&control->growth_left) != INT64_MAX)
            atomic_fetch_sub(&control->growth_left, grows);
        struct entry entry = {.kind = WRITTEN, .inode = found.st_ino, .position = position, .bytes = bytes, .length_before = found.st_size};
        int64_t end = position + bytes < found.st_size ? position + bytes : found.st_size;
        note_range(entry, fd, position, end);
        result = is_plain ? CALL(SYS_writev, fd, taken, used)
                          : failing_disk_call(SYS_pwritev, fd, (long)taken, used, position, 0, 0);
    }
    give();
    return result;
}

static void note_cut(int fd, const struct stat *found, uint64_t length) {
    struct entry entry = {.kind = CUT, .inode = found->st_ino, .position = length, .length_before = found->st_size};
    note_range(entry, fd, length, found->st_size);
}

static long do_cut(int fd, uint64_t length) {
    struct stat found;
    char path[PATH_MAX];
    if (!path_of(fd, path)) return CALL(SYS_ftruncate, fd, length, 0);
    take();
    fstat(fd, &found);
    note_cut(fd, &found, length);
    long result = CALL(SYS_ftruncate, fd, length, 0);
    give();
    return result;
}

static long do_sync(int fd) {
    struct stat found;
    char path[PATH_MAX];
    if (fstat(fd, &found) != 0 || (!path_of(fd, path) && strcmp(path, below) != 0)) return 0;
    take();
    uint64_t start = entries;
    give();
    // A spare segment whose sync fails is none, and the log goes on.
    int is_segment = S_ISREG(found.st_mode) && strstr(path, "/log/") && strstr(path, ".segment");
    if (is_segment && atomic_load(&control->syncs_left) != INT64_MAX &&
        atomic_fetch_sub(&control->syncs_left, 1) <= 0) {
        take();
        note((struct entry){.kind = SYNC_FAILED, .inode = found.st_ino, .position = start}, NULL, NULL);
        atomic_store(&control->syncs_left, INT64_MAX);
        atomic_fetch_add(&control->syncs_failed, 1);
        give();
        return -EIO;
    }
    int64_t most = atomic_load(&control->sync_us_max);
    struct timespec now, duration = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (most > 0) duration.tv_nsec = now.tv_nsec % (most * 1000);
    nanosleep(&duration, NULL);
    take();
    enum kind kind = S_ISDIR(found.st_mode) ? DIRECTORY_SYNCED : SYNCED;
    note((struct entry){.kind = kind, .inode = found.st_ino, .position = start}, path, NULL);
    give();
    return 0;
}

static long do_open(int directory, const char *name, long flags, long mode) {
    char path[PATH_MAX];
    if (!named(directory, name, path))
        return failing_disk_call(SYS_openat, directory, (long)name, flags, mode, 0, 0);
    take();
    struct stat found;
    int is_there = stat(path, &found) == 0;
    if (is_there && flags & O_TRUNC && S_ISREG(found.st_mode)) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) note_cut(fd, &found, 0);
        close(fd);
    }
    long fd = failing_disk_call(SYS_openat, directory, (long)name, flags, mode, 0, 0);
    if (!is_there && fd >= 0 && fstat(fd, &found) == 0)
        note((struct entry){.kind = CREATED, .inode = found.st_ino}, path, NULL);
    give();
    return fd;
}

static long do_rename(int from_directory, const char *from, int to_directory, const char *to, long flags) {
    char old[PATH_MAX], new[PATH_MAX];
    int is_ours = named(from_directory, from, old) & named(to_directory, to, new);
    take();
    if (is_ours) save(new, entries + 1);
    long result = failing_disk_call(SYS_renameat2, from_directory, (long)from, to_directory, (long)to, flags, 0);
    if (is_ours && result == 0) note((struct entry){.kind = RENAMED}, old, new);
    give();
    return result;
}

static long do_remove(int directory, const char *name, long flags) {
    char path[PATH_MAX];
    // A directory that comes back is empty.
    int is_ours = named(directory, name, path) && !(flags & AT_REMOVEDIR);
    take();
    if (is_ours) save(path, entries + 1);
    long result = CALL(SYS_unlinkat, directory, name, flags);
    if (is_ours && result == 0) note((struct entry){.kind = REMOVED}, path, NULL);
    give();
    return result;
}

static long do_make(int directory, const char *name, long mode) {
    char path[PATH_MAX];
    int is_ours = named(directory, name, path);
    take();
    long result = CALL(SYS_mkdirat, directory, name, mode);
    if (is_ours && result == 0) note((struct entry){.kind = DIRECTORY_MADE}, path, NULL);
    give();
    return result;
}

static long handle(long number, const long *of) {
    struct iovec one = {(void *)of[1], of[2]};
    const char *first = (const char *)of[0], *second = (const char *)of[1];
    switch (number) {
    case SYS_write: return do_write(number, of[0], &one, 1, 0);
    case SYS_pwrite64: return do_write(number, of[0], &one, 1, of[3]);
    case SYS_writev: return do_write(number, of[0], (void *)of[1], of[2], 0);
    case SYS_pwritev:
    case SYS_pwritev2: return do_write(number, of[0], (void *)of[1], of[2], of[3]);
    case SYS_ftruncate: return do_cut(of[0], of[1]);
    case SYS_fsync:
    case SYS_fdatasync: return do_sync(of[0]);
    case SYS_open: return do_open(AT_FDCWD, first, of[1], of[2]);
    case SYS_openat: return do_open(of[0], second, of[2], of[3]);
    case SYS_rename: return do_rename(AT_FDCWD, first, AT_FDCWD, second, 0);
    case SYS_renameat:
    case SYS_renameat2: return do_rename(of[0], second, of[2], (const char *)of[3], number == SYS_renameat2 ? of[4] : 0);
    case SYS_unlink: return do_remove(AT_FDCWD, first, 0);
    case SYS_unlinkat: return do_remove(of[0], second, of[2]);
    case SYS_mkdir: return do_make(AT_FDCWD, first, of[1]);
    case SYS_mkdirat: return do_make(of[0], second, of[2]);
    }
    return -ENOSYS;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int before = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long of[] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10], registers[REG_R8]};
    registers[REG_RAX] = handle(info->si_syscall, of);
    errno = before;
}

#define FIELD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define TRAP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define TRAPPED(number) IS(number, 0, 1), TRAP
#define TRAPPED_IF(number, argument, bit) \
    IS(number, 0, 4), FIELD(offsetof(struct seccomp_data, args[argument])), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 0, 1), TRAP, ALLOW

__attribute__((constructor)) static void begin(void) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = 0;
    const char *name = strrchr(program, '/');
    // Not the small program that becomes the server: the filter would outlive that, and its handler would not.
    if (!name || strcmp(name, "/spacetime") != 0 || !getenv("FAILING_DISK_BELOW")) return;
    snprintf(below, sizeof below, "%s", getenv("FAILING_DISK_BELOW"));
    snprintf(side, sizeof side, "%s", getenv("FAILING_DISK_SIDE"));
    snprintf(program, sizeof program, "%s/control", side);
    int fd = open(program, O_RDWR | O_CLOEXEC);
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(program, sizeof program, "%s/journal", side);
    journal = open(program, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || control == MAP_FAILED || journal < 0) fail("its files cannot be opened");
    close(fd);
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGSYS, &action, NULL);
    uint64_t own = (uint64_t)failing_disk_return;
    struct sock_filter filter[] = {
        FIELD(offsetof(struct seccomp_data, arch)), IS(AUDIT_ARCH_X86_64, 1, 0), ALLOW,
        FIELD(offsetof(struct seccomp_data, instruction_pointer)), IS((uint32_t)own, 0, 3),
        FIELD(offsetof(struct seccomp_data, instruction_pointer) + 4), IS(own >> 32, 0, 1), ALLOW,
        FIELD(offsetof(struct seccomp_data, nr)),
        TRAPPED(SYS_write), TRAPPED(SYS_pwrite64), TRAPPED(SYS_writev), TRAPPED(SYS_pwritev), TRAPPED(SYS_pwritev2),
        TRAPPED(SYS_ftruncate), TRAPPED(SYS_fsync), TRAPPED(SYS_fdatasync), TRAPPED(SYS_rename), TRAPPED(SYS_renameat),
        TRAPPED(SYS_renameat2), TRAPPED(SYS_unlink), TRAPPED(SYS_unlinkat), TRAPPED(SYS_mkdir), TRAPPED(SYS_mkdirat),
        TRAPPED_IF(SYS_open, 1, O_CREAT), TRAPPED_IF(SYS_openat, 2, O_CREAT), ALLOW,
    };
    struct sock_fprog filters = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        failing_disk_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filters, 0, 0, 0) != 0)
        fail("calls cannot be trapped");
}
