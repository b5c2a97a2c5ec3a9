/* malloc() and its relatives, which count while a watch is on and then do what glibc's do. */
#include "allocation_watch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static atomic_bool watching;
static atomic_uint_fast64_t watched_bytes;

void allocation_watch_begin(void) {
    atomic_store(&watched_bytes, 0);
    atomic_store(&watching, true);
}

uint64_t allocation_watch_end(void) {
    atomic_store(&watching, false);
    return atomic_load(&watched_bytes);
}

#if !defined(__GLIBC__) || defined(SANITIZED)

bool allocation_watch_works(void) { return false; }

#else

/* glibc's own, by the names that it exports for this. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size); /* malloc.h has it, with attributes of its own */

bool allocation_watch_works(void) { return true; }

static void note(size_t bytes) {
    if (atomic_load_explicit(&watching, memory_order_relaxed))
        atomic_fetch_add_explicit(&watched_bytes, bytes, memory_order_relaxed);
}

void *malloc(size_t size) {
    note(size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(count * size); /* where this wraps, the call fails */
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    note(size);
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) || (alignment & (alignment - 1)) || !alignment)
        return EINVAL;
    void *made = memalign(alignment, size);
    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    note(length);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    note(length);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

#endif
