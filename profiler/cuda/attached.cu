/* Runs an attached program's forwards in place of a kernel's, and collects in its process. */
#include "attached.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unordered_set>

#include "../attach_wire.h"

static const char library_name[] = "libmoesol-attach.so";
/* The driver hands out memory in blocks of this size; a handle opens a whole one. */
static const size_t block_bytes = (size_t)2 << 20;

/* --- open and close -------------------------------------------------------------------------- */

/* A shape is refused later, by the program itself. */
static bool takes_any_shape(const struct moe_shape *, const struct moe_device *, char *) {
    return true;
}

static size_t no_workspace(const struct moe_shape *, const struct moe_device *) { return 0; }

static int never_run(void *, const struct moe_call *, char *reason) {
    snprintf(reason, MOE_REASON_BYTES, "it is a program, not a kernel");
    return -1;
}

/* Beside the module that this code is in. */
static int find_library(char *path, size_t size, struct error *err) {
    Dl_info info;
    int length =
        dladdr((const void *)find_library, &info) ? snprintf(path, size, "%s", info.dli_fname) : -1;
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    if (!slash || (size_t)(slash - path) + sizeof library_name + 1 > size)
        return error_set(err, EXIT_FAILED, "attach: the place of %s is not known", library_name);
    strcpy(slash + 1, library_name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(err, EXIT_FAILED, "attach: no %.400s; build it with `make`", path);
    fclose(file);
    return 0;
}

static void device_name(const cudaUUID_t *uuid, char text[48]) {
    char *end = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        end += sprintf(end, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                       (unsigned)(unsigned char)uuid->bytes[i]);
}

static void describe_kernel(struct attached *attached) {
    struct moe_kernel *kernel = &attached->kernel;
    kernel->abi = MOE_KERNEL_ABI;
    kernel->platform = MOE_CUDA;
    kernel->name = attached->hello.name;
    kernel->summary = "an attached program";
    kernel->author = kernel->license = "";
    kernel->source = attached->source;
    kernel->value_type = attached->hello.value_type;
    kernel->ranked = strcmp(attached->hello.value_type, "fp16") == 0;
    kernel->library_only = attached->hello.library_only;
    kernel->supports = takes_any_shape;
    kernel->workspace_bytes = no_workspace;
    kernel->run = never_run;
    attached->kernels[0] = kernel;
}

int attached_open(struct backend_session *session, const char *command, size_t command_bytes,
                  const struct moe_kernel *const **kernels, struct error *err) {
    char library[1024], device[48];
    struct attached *attached = (struct attached *)calloc(1, sizeof *attached);
    if (!attached)
        return error_set(err, EXIT_FAILED, "out of memory: an attached program");
    session->attached = attached;
    attached->library = -1;
    attach_source(command, command_bytes, attached->source, sizeof attached->source);
    device_name(&session->properties.uuid, device);
    if (find_library(library, sizeof library, err) ||
        attach_start(command, command_bytes, device, library, &attached->program, err) ||
        attach_wait_hello(attached->program, &attached->hello, err))
        return -1;
    describe_kernel(attached);
    *kernels = attached->kernels;
    return 0;
}

void attached_close(struct backend_session *session) {
    if (!session->attached)
        return;
    attach_end(session->attached->program);
    free(session->attached);
    session->attached = NULL;
}

/* --- cases and forwards ---------------------------------------------------------------------- */

/* What could not be said cannot be said later, either. */
static int noted(struct attached *attached, int result) {
    if (result < 0)
        attached->broken = true;
    return result;
}

cudaError_t attached_malloc(void **memory, size_t bytes) {
    return cudaMalloc(memory, (bytes + block_bytes - 1) / block_bytes * block_bytes);
}

static int open_handle(void *memory, struct attach_tensor *tensor, struct error *err) {
    cudaIpcMemHandle_t handle;
    cudaError_t status = cudaIpcGetMemHandle(&handle, memory);
    static_assert(sizeof handle == sizeof tensor->ipc, "a CUDA IPC handle has 64 bytes");
    if (status)
        return cuda_failed(err, status, "cudaIpcGetMemHandle");
    memcpy(tensor->ipc, &handle, sizeof handle);
    return 0;
}

int attached_offer(struct backend_session *session, struct record_case *record_case,
                   struct error *err) {
    struct attached *attached = session->attached;
    const struct moe_shape *s = &session->suite_case.shape;
    const int64_t T = s->batch_seq_len, H = s->hidden_size, I = s->moe_intermediate_size,
                  E = s->num_experts, K = s->num_experts_per_tok;
    struct attach_tensor tensors[] = {{"hidden_states", "float16", {T, H}, 2, {}},
                                      {"topk_idx", "int64", {T, K}, 2, {}},
                                      {"topk_weight", "float16", {T, K}, 2, {}},
                                      {"expert_gate_projs", "float16", {E, I, H}, 3, {}},
                                      {"expert_up_projs", "float16", {E, I, H}, 3, {}},
                                      {"expert_down_projs", "float16", {E, H, I}, 3, {}},
                                      {"output", "float16", {T, H}, 2, {}}};
    void *const memory[] = {session->hidden, session->topk_idx, session->topk_weight, session->gate,
                            session->up,     session->down,     session->output};
    const size_t count = sizeof tensors / sizeof *tensors;
    for (size_t i = 0; i < count; i++)
        if (open_handle(memory[i], &tensors[i], err))
            return -1;
    int result =
        noted(attached,
              attach_offer(attached->program, session->suite_name, &session->suite_case, tensors,
                           count, record_case->reason, sizeof record_case->reason, err));
    if (result == 0) {
        attached->library = attach_collector(attached->program, err);
        result = attached->library < 0 ? -1 : 0;
    }
    attached->waiting = result == 0;
    return result;
}

int attached_end_case(struct backend_session *session, struct error *err) {
    struct attached *attached = session->attached;
    if (!attached->waiting || attached->broken)
        return 0;
    attached->waiting = false;
    return noted(attached, attach_end_case(attached->program, err));
}

int attached_convert(struct backend_session *session, const struct iteration *before,
                     const struct iteration *now, struct error *err) {
    struct attached *attached = session->attached;
    int64_t experts[2 * ITERATION_EXPERTS];
    int count = 0;
    const struct iteration *const both[] = {before, now};
    for (const struct iteration *one : both)
        for (int i = 0; i < one->expert_count; i++)
            experts[count++] = one->experts[i];
    return noted(attached, attach_convert(attached->program, experts, count, err));
}

/* Other processes of the program may come to CUDA at any time. */
int attached_run(struct backend_session *session, struct error *err) {
    struct attached *attached = session->attached;
    if (noted(attached, attach_run(attached->program, err)))
        return -1;
    return attach_collector(attached->program, err) < 0 ? -1 : 0;
}

/* --- the library in it ----------------------------------------------------------------------- */

static int lost(struct attached *attached, struct error *err) {
    attached->broken = true;
    return error_set(err, EXIT_FAILED,
                     "attach: the collector in %.80s cannot be reached any more; did the program "
                     "end, or close descriptors that are not its own?",
                     attached->hello.name);
}

static int command(struct attached *attached, enum attach_command_kind kind, int number,
                   const char *text, struct error *err) {
    struct attach_command command = {};
    command.kind = kind;
    command.number = number;
    snprintf(command.text, sizeof command.text, "%s", text);
    return attach_send(attached->library, &command, sizeof command) ? lost(attached, err) : 0;
}

static int receive(struct attached *attached, void *data, size_t bytes, struct error *err) {
    return attach_receive(attached->library, data, bytes) ? lost(attached, err) : 0;
}

static int take_answer(struct attached *attached, struct attach_answer *answer, struct error *err) {
    if (receive(attached, answer, sizeof *answer, err))
        return -1;
    answer->text[sizeof answer->text - 1] = '\0';
    if (answer->kind != ATTACH_FAILED)
        return 0;
    return error_set(err, EXIT_FAILED, "in %.80s: %.400s", attached->hello.name, answer->text);
}

static int obeyed(struct attached *attached, enum attach_command_kind kind, int number,
                  struct error *err) {
    struct attach_answer answer;
    return command(attached, kind, number, "", err) || take_answer(attached, &answer, err) ? -1 : 0;
}

int attached_collect(struct backend_session *session, struct error *err) {
    return obeyed(session->attached, ATTACH_COLLECT, 0, err);
}

int attached_iteration(struct backend_session *session, int iteration, struct error *err) {
    return obeyed(session->attached, ATTACH_ITERATION, iteration, err);
}

void attached_stop(struct backend_session *session) {
    struct error ignored = {};
    if (!session->attached->broken)
        obeyed(session->attached, ATTACH_STOP, 0, &ignored);
}

/* Names live as long as the process, as struct activity wants them. */
static const char *intern(const char *name) {
    static std::unordered_set<std::string> *names = new std::unordered_set<std::string>;
    return names->insert(name).first->c_str();
}

static int take_phases(struct backend_session *session, const struct attach_answer *answer,
                       struct error *err) {
    struct phase_table *phases = &session->phases;
    static_assert(SESSION_MAX_PHASES == ATTACH_PHASES_MOST &&
                      SESSION_PHASE_NAME == ATTACH_PHASE_BYTES,
                  "phases as the session has them");
    if (answer->phases > ATTACH_PHASES_MOST || answer->too_many_phases)
        return error_set(err, EXIT_FAILED, "in %.80s: more than %d NVTX ranges of different names",
                         session->attached->hello.name, ATTACH_PHASES_MOST);
    phases->count = (int)answer->phases;
    return receive(session->attached, phases->names, answer->phases * ATTACH_PHASE_BYTES, err);
}

static int take_names(struct attached *attached, uint32_t count, const char **names,
                      struct error *err) {
    for (uint32_t i = 0; i < count; i++) {
        char name[ATTACH_NAME_BYTES];
        if (receive(attached, name, sizeof name, err))
            return -1;
        name[sizeof name - 1] = '\0';
        names[i] = intern(name);
    }
    return 0;
}

static int take_activities(struct attached *attached, const struct attach_answer *answer,
                           const char *const *names, struct activity *activities,
                           struct error *err) {
    if (receive(attached, activities, answer->count * sizeof *activities, err))
        return -1;
    for (uint64_t i = 0; i < answer->count; i++) {
        size_t name = (size_t)activities[i].name;
        if (name >= answer->names || activities[i].phase >= (int)answer->phases)
            return lost(attached, err);
        activities[i].name = names[name];
    }
    return 0;
}

int attached_take(struct backend_session *session, struct activity **activities, size_t *count,
                  struct error *err) {
    struct attached *attached = session->attached;
    struct attach_answer answer;
    *activities = NULL;
    *count = 0;
    if (command(attached, ATTACH_TAKE, 0, "", err) || take_answer(attached, &answer, err) ||
        take_phases(session, &answer, err))
        return -1;
    const char **names = (const char **)calloc(answer.names + 1, sizeof *names);
    struct activity *taken = (struct activity *)calloc(answer.count + 1, sizeof *taken);
    int result = names && taken
                     ? 0
                     : error_set(err, EXIT_FAILED, "out of memory: an attached program's launches");
    if (!result)
        result = take_names(attached, answer.names, names, err);
    if (!result)
        result = take_activities(attached, &answer, names, taken, err);
    free(names);
    if (result) {
        free(taken);
        return -1;
    }
    *activities = taken;
    *count = answer.count;
    return 0;
}

/* --- counters -------------------------------------------------------------------------------- */

static int take_counters(struct attached *attached, const struct attach_answer *answer,
                         struct record_counters *counters, struct error *err) {
    counters->pass_count = answer->pass_count;
    snprintf(counters->reason, sizeof counters->reason, "%.*s", (int)sizeof counters->reason - 1,
             answer->text);
    counters->phases =
        (struct record_phase_counters *)calloc(answer->phases + 1, sizeof *counters->phases);
    for (uint32_t i = 0; counters->phases && i < answer->phases; i++) {
        struct record_phase_counters *phase = &counters->phases[i];
        struct attach_phase_counters head;
        if (receive(attached, &head, sizeof head, err))
            return -1;
        snprintf(phase->name, sizeof phase->name, "%.*s", (int)sizeof head.name - 1, head.name);
        phase->metrics =
            (struct record_metric *)calloc(head.metric_count + 1, sizeof *phase->metrics);
        counters->phase_count = i + 1;
        if (!phase->metrics)
            return error_set(err, EXIT_FAILED, "out of memory: counters");
        phase->metric_count = head.metric_count;
        if (receive(attached, phase->metrics, head.metric_count * sizeof *phase->metrics, err))
            return -1;
    }
    return counters->phases ? 0 : error_set(err, EXIT_FAILED, "out of memory: counters");
}

int attached_count(struct backend_session *session, const char *level, int (*prepare)(void *self),
                   int (*body)(void *self), void *self, struct record_counters *counters,
                   struct error *err) {
    struct attached *attached = session->attached;
    struct attach_answer answer;
    if (command(attached, ATTACH_COUNT, 0, level, err))
        return -1;
    for (;;) {
        /* The first error is the one to tell: the library only hears that there was one. */
        if (take_answer(attached, &answer, err))
            return -1;
        if (answer.kind == ATTACH_DONE)
            return take_counters(attached, &answer, counters, err);
        int failed = answer.kind == ATTACH_PREPARE ? prepare(self) : body(self);
        if (command(attached, ATTACH_GO_ON, !failed, "", err))
            return -1;
    }
}
