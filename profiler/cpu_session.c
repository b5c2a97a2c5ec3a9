/* One pass of a kernel on the CPU and what surrounds it: the phase clock, the input draw, the
 * poison and the cache flush. */
#include "cpu_session.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocation_watch.h"

/* NaN as fp16 and fp32, -1 as an integer: what a kernel reads of it shows. */
static const int poison = 0xff;
#define PIECE (1ull << 20)

double cpu_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int find_phase(struct cpu_clock *clock, const char *name) {
    for (int i = 0; i < clock->count; i++)
        if (!strcmp(clock->names[i], name))
            return i;
    if (clock->count == CPU_MAX_PHASES || strlen(name) >= CPU_PHASE_NAME)
        return -1;
    snprintf(clock->names[clock->count], CPU_PHASE_NAME, "%s", name);
    clock->open_ns[clock->count] = 0.0;
    return clock->count++;
}

static void clock_push(void *self, const char *name) {
    struct cpu_clock *clock = self;
    int phase = find_phase(clock, name);
    clock->misused |= clock->open >= 0 || phase < 0;
    clock->open = phase;
    clock->opened_at_ns = cpu_now_ns();
}

static void clock_pop(void *self) {
    struct cpu_clock *clock = self;
    double now_ns = cpu_now_ns();
    if (clock->open < 0) {
        clock->misused = true;
        return;
    }
    clock->open_ns[clock->open] += now_ns - clock->opened_at_ns;
    clock->open = -1;
}

static void clock_reset(struct cpu_clock *clock) {
    for (int i = 0; i < clock->count; i++)
        clock->open_ns[i] = 0.0;
    clock->open = -1;
    clock->misused = false;
}

int cpu_session_run(struct backend_session *session, double *span_ns, struct error *err) {
    char reason[MOE_REASON_BYTES] = "";
    struct cpu_clock *clock = &session->clock;
    session->sink = (struct moe_phase_sink){clock_push, clock_pop, clock};
    session->call.phases = &session->sink;
    clock_reset(clock);

    allocation_watch_begin();
    double start_ns = cpu_now_ns();
    int status = session->kernel->run(session->kernel_state, &session->call, reason);
    *span_ns = cpu_now_ns() - start_ns;
    session->allocated_bytes = allocation_watch_end();
    cpu_glimpse_take(session);
    if (status)
        return error_set(err, EXIT_FAILED, "kernel %s failed: %s", session->kernel->name,
                         *reason ? reason : "it gave no reason");
    if (clock->misused || clock->open >= 0)
        return error_set(err, EXIT_FAILED,
                         "kernel %s: its phases nest, are not closed, or are more than %d",
                         session->kernel->name, CPU_MAX_PHASES);
    return 0;
}

static void fill(void *memory, size_t bytes, int value) {
    uint64_t pieces = (bytes + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) if (pieces > 1)
    for (uint64_t i = 0; i < pieces; i++) {
        size_t at = i * PIECE, left = bytes - at;
        memset((char *)memory + at, value, left < PIECE ? left : PIECE);
    }
}

/* The experts of `which`, from draw `draw`. */
static void draw_experts(struct backend_session *session, const struct iteration *which,
                         uint64_t draw) {
    const struct moe_shape *shape = &session->inputs.shape;
    uint64_t each = (uint64_t)(shape->moe_intermediate_size * shape->hidden_size);
    for (int i = 0; i < which->expert_count; i++) {
        uint64_t first = (uint64_t)which->experts[i] * each;
        const struct host_inputs *inputs = &session->inputs;
        host_inputs_weights_draw(inputs, DRAW_GATE, draw, first, each, session->gate + first);
        host_inputs_weights_draw(inputs, DRAW_UP, draw, first, each, session->up + first);
        host_inputs_weights_draw(inputs, DRAW_DOWN, draw, first, each, session->down + first);
    }
}

void cpu_session_restore_weights(struct backend_session *session) {
    draw_experts(session, &session->weights, 0);
    session->weights = iteration_plain(0);
}

void cpu_session_redraw(struct backend_session *session, const struct iteration *iteration) {
    const struct moe_shape *shape = &session->call.shape;
    uint64_t draw = iteration->draw;
    cpu_session_restore_weights(session);
    draw_experts(session, iteration, draw);
    session->weights = *iteration;
    host_inputs_hidden(&session->inputs, draw, 0, shape->batch_seq_len, session->hidden);
    host_inputs_routing(&session->inputs, draw, shape->batch_seq_len, session->topk_idx,
                        session->topk_weight);
    fill(session->call.output, cpu_session_output_elements(session) * sizeof(moe_half), poison);
    fill(session->call.workspace, session->call.workspace_bytes, poison);
}

static uint64_t read_words(const char *memory, size_t bytes) {
    uint64_t sum = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += 64) {
        uint64_t word;
        memcpy(&word, memory + at, sizeof word);
        sum += word;
    }
    return sum;
}

void cpu_session_flush(struct backend_session *session) {
    static volatile uint64_t sink; /* keeps the reads from being left out */
    uint64_t pieces = (session->flush_bytes + PIECE - 1) / PIECE, sum = 0;
    fill(session->flush, session->flush_bytes, 1);
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (uint64_t i = 0; i < pieces; i++) {
        size_t at = i * PIECE, left = session->flush_bytes - at;
        sum += read_words(session->flush + at, left < PIECE ? left : PIECE);
    }
    sink = sum;
    (void)sink;
}
