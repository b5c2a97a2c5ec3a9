/* A program that runs beside the worker in place of a kernel (attach.h), and the library in it that
 * collects (attach_wire.h), as the session uses them. Functions that return int return 0, or -1
 * with *err. */
#ifndef MOESOL_PROFILER_CUDA_ATTACHED_H
#define MOESOL_PROFILER_CUDA_ATTACHED_H

#include "../activity.h"
#include "../attach.h"
#include "session.h"

struct attached {
    struct attach_program *program;
    struct moe_kernel kernel; /* what it says it is */
    const struct moe_kernel *kernels[2];
    struct attach_hello hello;
    char source[512];
    int library;  /* the socket; -1: not known yet */
    bool waiting; /* it has been offered the case at hand and asks for forwards */
    bool broken;  /* it ended or cannot be talked to any more */
};

/* backend.attach */
int attached_open(struct backend_session *session, const char *command, size_t command_bytes,
                  const struct moe_kernel *const **kernels, struct error *err);
void attached_close(struct backend_session *session);

/* Offers the case whose buffers the session has just made. 1, with record_case->reason, where the
 * program refuses it. */
int attached_offer(struct backend_session *session, struct record_case *record_case,
                   struct error *err);
/* It lets go of them, before they are freed. */
int attached_end_case(struct backend_session *session, struct error *err);

/* Memory that another process can open by itself: of whole blocks of the driver's. */
cudaError_t attached_malloc(void **memory, size_t bytes);

/* New inputs are there, and new weights of the experts of `before` and `now`: the program converts
 * what it keeps of its own. Before the L2 is flushed. */
int attached_convert(struct backend_session *session, const struct iteration *before,
                     const struct iteration *now, struct error *err);
int attached_run(struct backend_session *session, struct error *err);

/* As collector.h's activity_... and counters_collect(), in the program. The phases come with
 * attached_take(), into session->phases. */
int attached_collect(struct backend_session *session, struct error *err);
int attached_iteration(struct backend_session *session, int iteration, struct error *err);
int attached_take(struct backend_session *session, struct activity **activities, size_t *count,
                  struct error *err);
void attached_stop(struct backend_session *session);
int attached_count(struct backend_session *session, const char *level, int (*prepare)(void *self),
                   int (*body)(void *self), void *self, struct record_counters *counters,
                   struct error *err);

#endif
