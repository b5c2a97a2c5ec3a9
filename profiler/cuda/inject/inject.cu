/* The library that the driver loads into an attached program (CUDA_INJECTION64_PATH), at its first
 * use of CUDA. A thread of its own takes the worker's commands (attach_wire.h) and collects with
 * the same collector as for kernels of our own. */
#include <cuda_runtime_api.h>

#include <atomic>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "../../attach_wire.h"
#include "../collector.h"
#include "phases.h"

namespace {

/* --- answers --------------------------------------------------------------------------------- */

struct attach_answer new_answer(enum attach_answer_kind kind) {
    struct attach_answer answer = {};
    answer.kind = kind;
    answer.pass_count = NAN;
    return answer;
}

int fail(int worker, const struct error *err) {
    struct attach_answer answer = new_answer(ATTACH_FAILED);
    snprintf(answer.text, sizeof answer.text, "%s", err->text);
    return attach_send(worker, &answer, sizeof answer);
}

int done(int worker) {
    struct attach_answer answer = new_answer(ATTACH_DONE);
    return attach_send(worker, &answer, sizeof answer);
}

/* --- activity records ------------------------------------------------------------------------ */

/* Each name once; the activities' pointers become indices. */
std::vector<char> number_names(struct activity *activities, size_t count) {
    std::unordered_map<const char *, size_t> known;
    std::vector<char> names;
    for (size_t i = 0; i < count; i++) {
        auto found = known.find(activities[i].name);
        if (found == known.end()) {
            char name[ATTACH_NAME_BYTES] = "";
            snprintf(name, sizeof name, "%s", activities[i].name);
            names.insert(names.end(), name, name + sizeof name);
            found = known.emplace(activities[i].name, known.size()).first;
        }
        activities[i].name = (const char *)found->second;
    }
    return names;
}

int send_activities(int worker, struct activity *activities, size_t count) {
    struct attach_answer answer = new_answer(ATTACH_DONE);
    char phases[ATTACH_PHASES_MOST * ATTACH_PHASE_BYTES];
    int too_many = 0;
    std::vector<char> names = number_names(activities, count);
    answer.phases = (uint32_t)phases_names(phases, &too_many);
    answer.too_many_phases = (uint32_t)too_many;
    answer.names = (uint32_t)(names.size() / ATTACH_NAME_BYTES);
    answer.count = count;
    if (attach_send(worker, &answer, sizeof answer) ||
        attach_send(worker, phases, answer.phases * ATTACH_PHASE_BYTES) ||
        attach_send(worker, names.data(), names.size()))
        return -1;
    return attach_send(worker, activities, count * sizeof *activities);
}

int take(int worker) {
    struct activity *activities = NULL;
    size_t count = 0;
    struct error err = {};
    if (activity_take(&activities, &count, &err))
        return fail(worker, &err);
    int result = send_activities(worker, activities, count);
    free(activities);
    return result;
}

int collect(int worker) {
    struct error err = {};
    phases_forget();
    if (activity_start(&err))
        return fail(worker, &err);
    phases_set_mode(PHASES_ACTIVITY);
    return done(worker);
}

int stop(int worker) {
    phases_set_mode(PHASES_OFF);
    activity_stop();
    return done(worker);
}

/* --- counters -------------------------------------------------------------------------------- */

/* The worker does what is asked for, and says whether it could. */
int ask_worker(void *self, enum attach_answer_kind what) {
    int worker = *(int *)self;
    struct attach_answer answer = new_answer(what);
    struct attach_command command;
    if (attach_send(worker, &answer, sizeof answer) ||
        attach_receive(worker, &command, sizeof command))
        return -1;
    return command.kind == ATTACH_GO_ON && command.number ? 0 : -1;
}

int prepare(void *self) { return ask_worker(self, ATTACH_PREPARE); }
int body(void *self) { return ask_worker(self, ATTACH_BODY); }

int send_counters(int worker, const struct record_counters *counters) {
    struct attach_answer answer = new_answer(ATTACH_DONE);
    answer.phases = (uint32_t)counters->phase_count;
    answer.pass_count = counters->pass_count;
    snprintf(answer.text, sizeof answer.text, "%s", counters->reason);
    if (attach_send(worker, &answer, sizeof answer))
        return -1;
    for (size_t i = 0; i < counters->phase_count; i++) {
        const struct record_phase_counters *phase = &counters->phases[i];
        struct attach_phase_counters head = {};
        snprintf(head.name, sizeof head.name, "%s", phase->name);
        head.metric_count = phase->metric_count;
        if (attach_send(worker, &head, sizeof head) ||
            attach_send(worker, phase->metrics, phase->metric_count * sizeof *phase->metrics))
            return -1;
    }
    return 0;
}

int count(int worker, const char *level) {
    struct record_counters counters = {};
    struct error err = {};
    phases_set_mode(PHASES_COUNTERS);
    int failed = counters_collect(level, prepare, body, &worker, &counters, &err);
    phases_set_mode(PHASES_OFF);
    int result = failed ? fail(worker, &err) : send_counters(worker, &counters);
    for (size_t i = 0; i < counters.phase_count; i++)
        free(counters.phases[i].metrics);
    free(counters.phases);
    return result;
}

/* --- the thread ------------------------------------------------------------------------------ */

int obey(int worker, const struct attach_command *command) {
    switch (command->kind) {
    case ATTACH_COLLECT:
        return collect(worker);
    case ATTACH_ITERATION:
        activity_iteration(command->number);
        return done(worker);
    case ATTACH_TAKE:
        return take(worker);
    case ATTACH_STOP:
        return stop(worker);
    case ATTACH_COUNT:
        return count(worker, command->text);
    default:
        return -1;
    }
}

/* The program's context is the device's primary one, which the runtime takes; it is there once the
 * worker commands, since the program has opened its tensors by then. */
void serve(int worker) {
    struct attach_command command;
    while (attach_receive(worker, &command, sizeof command) == 0) {
        command.text[sizeof command.text - 1] = '\0';
        cudaSetDevice(0);
        if (obey(worker, &command))
            break;
    }
    close(worker);
}

int call_worker(const char *path) {
    struct sockaddr_un address = {};
    const struct attach_greeting greeting = {ATTACH_WIRE_VERSION, (uint32_t)getpid()};
    int worker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (worker >= 0 && connect(worker, (struct sockaddr *)&address, sizeof address) == 0 &&
        attach_send(worker, &greeting, sizeof greeting) == 0)
        return worker;
    if (worker >= 0)
        close(worker);
    return -1;
}

} // namespace

/* The driver calls this inside cuInit(): nothing of CUDA may be used yet. */
extern "C" int InitializeInjection(void) {
    static std::atomic<bool> called;
    const char *path = getenv("MOESOL_ATTACH_COLLECTOR");
    if (!path || called.exchange(true))
        return 1;
    int worker = call_worker(path);
    if (worker >= 0)
        std::thread(serve, worker).detach();
    return 1;
}
