/* A program that somebody else wrote (in any language), as a worker drives it for `moesol attach`:
 * started beside the worker, told a case's tensors, asked for one forward after another. JSON Lines
 * over a Unix socket whose path the program finds in MOESOL_ATTACH; the program asks, the worker
 * answers. doc/attach.md has the protocol, kernels/torch/moesol.py a reader of it.
 *
 * What the program does on the device is seen by a library that is loaded into it
 * (profiler/inject/), which talks over a second socket (attach_wire.h).
 *
 * Functions that return int return 0, or -1 with *err: the program ended, or broke the protocol.
 * None has a time limit: that is the parent's, which ends worker and program. */
#ifndef MOESOL_PROFILER_ATTACH_H
#define MOESOL_PROFILER_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cases/suite.h"
#include "../core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* argv as `moesol attach` got it, each word with its '\0', one after another. */
#define ATTACH_COMMAND_BYTES 8192

#define ATTACH_PROTOCOL 1
#define ATTACH_DIMENSIONS_MOST 3

struct attach_words {
    char text[ATTACH_COMMAND_BYTES];
    size_t bytes;
};

struct attach_program; /* one that runs */

/* What it says of itself. */
struct attach_hello {
    char name[64]; /* as a kernel's: a-z, 0-9 and dashes */
    char value_type[16];
    bool library_only;
};

/* Device memory of the worker's, row-major. */
struct attach_tensor {
    const char *name;  /* of the workload: "hidden_states", ... */
    const char *dtype; /* "float16" or "int64" */
    int64_t shape[ATTACH_DIMENSIONS_MOST];
    int dimensions;
    unsigned char ipc[64]; /* cudaIpcMemHandle_t; the tensor begins where it opens */
};

/* Starts it; `device` is what CUDA_VISIBLE_DEVICES shall say, `library` the path of what is loaded
 * into it. Waits for nothing. Its standard output goes to standard error. */
int attach_start(const char *command, size_t command_bytes, const char *device, const char *library,
                 struct attach_program **program, struct error *err);

/* The file that a command runs, for the record: the first word that is a file, the program's own
 * left out where another one is (python3 mine.py: mine.py). "" where there is none. */
void attach_source(const char *command, size_t command_bytes, char *path, size_t size);

/* Waits for it to say what it is. */
int attach_wait_hello(struct attach_program *program, struct attach_hello *hello,
                      struct error *err);

/* Offers a case when it asks for one, and waits until it either asks for a forward or refuses: then
 * 1, with the reason. */
int attach_offer(struct attach_program *program, const char *suite,
                 const struct suite_case *suite_case, const struct attach_tensor *tensors,
                 size_t tensor_count, char *refusal, size_t size, struct error *err);

/* Before a forward whose inputs are new: lets a program of another value type convert them, and the
 * weights of these experts. Waits until it is ready. Others have nothing to do. */
int attach_convert(struct attach_program *program, const int64_t *experts, int expert_count,
                   struct error *err);

/* One forward: the program runs it and waits for the device. */
int attach_run(struct attach_program *program, struct error *err);

/* The case is over: waits until the program has let go of its tensors. */
int attach_end_case(struct attach_program *program, struct error *err);

/* The socket of the library in the process that asked for the case; -1 with *err where that process
 * has not used CUDA, or another process of the program has. */
int attach_collector(struct attach_program *program, struct error *err);

/* Tells it that there are no more cases, gives it some seconds, and ends it. Takes NULL. */
void attach_end(struct attach_program *program);

#ifdef __cplusplus
}
#endif
#endif
