/* Subscribes to the program's NVTX calls, push and pop of both interfaces. NVTX calls
 * InitializeInjectionNvtx2() at the program's first call of it (NVTX_INJECTION64_PATH). Ranges that
 * start and end (nvtxRangeStart) may overlap and belong to no thread: they are not phases. */
#include "phases.h"

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <mutex>
#include <stdio.h>
#include <string.h>

#include "../../attach_wire.h"
#include "../collector.h"

namespace {

constexpr int NO_PHASE = -1;

struct table {
    std::mutex mutex;
    char names[ATTACH_PHASES_MOST][ATTACH_PHASE_BYTES];
    int count;
    bool too_many;
};
/* Never destroyed: the program may open ranges while it exits. */
struct table &table = *new struct table();
std::atomic<int> current_mode;
thread_local int depth;

int index_of(const char *name) {
    std::lock_guard<std::mutex> lock(table.mutex);
    for (int i = 0; i < table.count; i++)
        if (strncmp(table.names[i], name, ATTACH_PHASE_BYTES - 1) == 0)
            return i;
    if (table.count == ATTACH_PHASES_MOST) {
        table.too_many = true;
        return NO_PHASE;
    }
    snprintf(table.names[table.count], ATTACH_PHASE_BYTES, "%s", name);
    return table.count++;
}

int push(const char *name) {
    if (depth++ > 0)
        return depth - 1;
    char shortened[ATTACH_PHASE_BYTES];
    snprintf(shortened, sizeof shortened, "%s", name && *name ? name : "unnamed");
    if (current_mode == PHASES_ACTIVITY)
        activity_phase(index_of(shortened));
    else if (current_mode == PHASES_COUNTERS)
        counters_push(shortened);
    return 0;
}

int pop(void) {
    if (depth == 0)
        return -1;
    if (--depth > 0)
        return depth;
    if (current_mode == PHASES_ACTIVITY)
        activity_phase(NO_PHASE);
    else if (current_mode == PHASES_COUNTERS)
        counters_pop();
    return 0;
}

/* --- what NVTX calls ------------------------------------------------------------------------- */

const char *text_of(const nvtxEventAttributes_t *attributes) {
    if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII)
        return attributes->message.ascii;
    if (attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
        return (const char *)attributes->message.registered; /* as register_string() gave it */
    return NULL;
}

int NVTX_API push_ascii(const char *name) { return push(name); }

int NVTX_API push_attributes(const nvtxEventAttributes_t *attributes) {
    return push(text_of(attributes));
}

int NVTX_API push_in_domain(nvtxDomainHandle_t, const nvtxEventAttributes_t *attributes) {
    return push(text_of(attributes));
}

int NVTX_API pop_any(void) { return pop(); }

int NVTX_API pop_in_domain(nvtxDomainHandle_t) { return pop(); }

/* Kept for good, as NVTX asks for. */
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char *text) {
    return (nvtxStringHandle_t)strdup(text ? text : "");
}

struct subscription {
    unsigned index;
    NvtxFunctionPointer function;
};

bool subscribe(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
               const struct subscription *wanted, size_t count) {
    NvtxFunctionTable functions = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &functions, &size))
        return false;
    for (size_t i = 0; i < count; i++)
        if (wanted[i].index < size)
            *functions[wanted[i].index] = wanted[i].function;
    return true;
}

} // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
    const struct subscription core[] = {
        {NVTX_CBID_CORE_RangePushEx, (NvtxFunctionPointer)push_attributes},
        {NVTX_CBID_CORE_RangePushA, (NvtxFunctionPointer)push_ascii},
        {NVTX_CBID_CORE_RangePop, (NvtxFunctionPointer)pop_any}};
    const struct subscription core2[] = {
        {NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push_in_domain},
        {NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop_in_domain},
        {NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)register_string}};
    const NvtxExportTableCallbacks *callbacks =
        (const NvtxExportTableCallbacks *)export_table(NVTX_ETID_CALLBACKS);
    return callbacks &&
           subscribe(callbacks, NVTX_CB_MODULE_CORE, core, sizeof core / sizeof *core) &&
           subscribe(callbacks, NVTX_CB_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
}

void phases_set_mode(enum phases_mode mode) { current_mode = mode; }

size_t phases_names(char *names, int *too_many) {
    std::lock_guard<std::mutex> lock(table.mutex);
    memcpy(names, table.names, (size_t)table.count * ATTACH_PHASE_BYTES);
    *too_many = table.too_many;
    return (size_t)table.count;
}

void phases_forget(void) {
    std::lock_guard<std::mutex> lock(table.mutex);
    table.count = 0;
    table.too_many = false;
}
