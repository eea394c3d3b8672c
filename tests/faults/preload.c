/* A library that changes the clock and makes the disk fail for the processes that preload it.
 *
 * MOSAIC_PRELOAD names a file of 264 bytes that all of them map, so one write takes effect in all processes at once:
 *
 *     0  int64  nanoseconds to add to the wall clock
 *     8  int64  the errno of every write, sync, create, rename …; 0: the disk works
 *    16  char   [248] … for files whose path contains this text
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct preload {
    volatile int64_t clock_ns;
    volatile int64_t error;
    char where[248];
};

static struct preload no_faults;
static struct preload *now = &no_faults;

#define REAL(name) ({ static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name); real; })

__attribute__((constructor)) static void map_state(void) {
    const char *path = getenv("MOSAIC_PRELOAD");
    int fd = path ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(struct preload), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        now = map;
}

/* The disk */

static int refuses_path(const char *path) {
    int64_t error = now->error;
    if (!error || !path || !strstr(path, now->where))
        return 0;
    errno = (int)error;
    return 1;
}

static int refuses(int fd) {
    char link[64], path[4096];
    if (!now->error)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return refuses_path(path);
}

#define ON_FD(result, name, parameters, arguments)                  \
    result name parameters {                                        \
        return refuses(fd) ? (result)-1 : REAL(name) arguments;     \
    }

ON_FD(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
ON_FD(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
ON_FD(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
ON_FD(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
ON_FD(int, fsync, (int fd), (fd))
ON_FD(int, fdatasync, (int fd), (fd))
ON_FD(int, ftruncate, (int fd, off_t size), (fd, size))
ON_FD(int, ftruncate64, (int fd, off64_t size), (fd, size))
ON_FD(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
ON_FD(int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size))

int posix_fallocate(int fd, off_t at, off_t size) { return refuses(fd) ? errno : REAL(posix_fallocate)(fd, at, size); }
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    return refuses(fd) ? errno : REAL(posix_fallocate64)(fd, at, size);
}
int rename(const char *old, const char *new) {
    return refuses_path(old) || refuses_path(new) ? -1 : REAL(rename)(old, new);
}
int mkdir(const char *path, mode_t mode) { return refuses_path(path) ? -1 : REAL(mkdir)(path, mode); }
int unlink(const char *path) { return refuses_path(path) ? -1 : REAL(unlink)(path); }

/* Opening for reading succeeds; opening for writing fails. */
#define OPENING(name, arguments)                                                  \
    {                                                                             \
        va_list rest;                                                             \
        va_start(rest, flags);                                                    \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                             \
        if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && refuses_path(path))        \
            return -1;                                                            \
        return REAL(name) arguments;                                              \
    }

int open(const char *path, int flags, ...) OPENING(open, (path, flags, mode))
int open64(const char *path, int flags, ...) OPENING(open64, (path, flags, mode))
int openat(int at, const char *path, int flags, ...) OPENING(openat, (at, path, flags, mode))
int openat64(int at, const char *path, int flags, ...) OPENING(openat64, (at, path, flags, mode))

/* The clock */

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = REAL(clock_gettime)(clock, time);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += now->clock_ns / 1000000000;
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    int result = REAL(gettimeofday)(time, zone);
    if (!result)
        time->tv_sec += now->clock_ns / 1000000000;
    return result;
}

time_t time(time_t *place) {
    struct timespec spec;
    clock_gettime(CLOCK_REALTIME, &spec);
    if (place)
        *place = spec.tv_sec;
    return spec.tv_sec;
}
