/* What the two halves of attach.h share: the process with its sockets (attach_process.c) and what
 * is said over them (attach_protocol.c). */
#ifndef MOESOL_PROFILER_ATTACH_PROCESS_H
#define MOESOL_PROFILER_ATTACH_PROCESS_H

#include <sys/types.h>

#include "attach.h"

#define ATTACH_LIBRARIES_MOST 16

/* What the program asked and has no answer to yet. */
enum attach_request {
    REQUEST_NONE = 0,
    REQUEST_HELLO,
    REQUEST_CASE,
    REQUEST_REFUSE,
    REQUEST_NEXT,
    REQUEST_BEGIN,
    REQUEST_COUNT
};

/* A process of the program in which the library was loaded: one that uses CUDA. */
struct attach_library {
    int socket;
    pid_t pid;
};

struct attach_program {
    char word[256]; /* the first of its command, for messages */
    char folder[64];
    pid_t pid;
    bool ended; /* it was waited for: */
    int wait_status;
    int listener, library_listener;
    int connection; /* -1: it has not called yet */
    pid_t speaker;  /* the process that called */
    struct attach_library libraries[ATTACH_LIBRARIES_MOST];
    size_t library_count;
    char buffer[65536]; /* what came, from the line after the last one read */
    size_t filled, line_bytes;
    const char *stage; /* what it is doing, for messages: "before it asked for a case" */
    enum attach_request pending;
    bool converts; /* what its last REQUEST_NEXT said */
};

/* The next line it sends, without the newline; there until the next call. */
int attach_read_line(struct attach_program *program, const char **line, struct error *err);
int attach_write_line(struct attach_program *program, const char *line, struct error *err);

#endif
