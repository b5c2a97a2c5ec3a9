/* Chooses and describes devices through workers. */
#include "device_choice.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "run_worker.h"

/* Opening a GPU takes seconds, its ceilings under a minute; a machine in trouble takes for ever. */
static const double describe_limit_s = 120;
static const double ceilings_limit_s = 600;

int device_parse(const char *command, const char *text, char kind[8], int *index,
                 struct error *err) {
    static const char *const kinds[] = {"cpu", "cuda", "cuda:0"};
    *index = 0;
    if (strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0) {
        strcpy(kind, text);
        return 0;
    }
    if (strncmp(text, "cuda:", 5) == 0 && isdigit((unsigned char)text[5]) &&
        strspn(text + 5, "0123456789") == strlen(text + 5) && strlen(text + 5) <= 4) {
        strcpy(kind, "cuda");
        *index = atoi(text + 5);
        return 0;
    }
    if (strncasecmp(text, "gpu", 3) == 0) /* by its letters, "cpu" would be the nearest */
        return error_set(err, EXIT_USAGE, "%s: unknown device: %.80s; the nearest is cuda", command,
                         text);
    return options_unknown(command, "device", text, kinds, 3, err);
}

/* --- what a worker says ---------------------------------------------------------------------- */

struct answer {
    struct device_info *info; /* describe */
    struct record_ceiling **ceilings;
    size_t *ceiling_count;
};

static int keep_kernel(struct device_info *info, const struct record_run *run, struct error *err) {
    struct record_kernel *grown =
        realloc(info->kernels, (info->kernel_count + 1) * sizeof *info->kernels);
    if (!grown)
        return error_set(err, EXIT_FAILED, "out of memory: the list of kernels");
    info->kernels = grown;
    info->kernels[info->kernel_count++] = run->kernel;
    info->device = run->device;
    return 0;
}

static int take_run_line(void *self, enum worker_message_kind kind, int case_number,
                         const char *line, size_t length, struct error *err) {
    struct answer *answer = self;
    struct record record;
    int result = 0;
    (void)kind, (void)case_number;
    if (record_parse(line, length, "a worker's answer", &record, err))
        return RUN_WORKER_BAD_LINE;
    if (answer->info) {
        result = keep_kernel(answer->info, &record.run, err);
    } else {
        free(*answer->ceilings);
        *answer->ceilings = record.run.ceilings;
        *answer->ceiling_count = record.run.ceiling_count;
        record.run.ceilings = NULL;
        record.run.ceiling_count = 0;
    }
    record_free(&record);
    return result;
}

/* `plugin` and `attach` may be NULL. */
static int ask(enum worker_mode mode, const char *kind, int index, const char *plugin,
               const struct attach_words *attach, int signal_fd, struct answer *answer,
               struct error *err) {
    struct worker_job job = {.mode = mode, .device_index = index};
    struct run_worker_hooks hooks = {.self = answer,
                                     .load_limit_s = mode == WORKER_DESCRIBE ? describe_limit_s
                                                                             : ceilings_limit_s,
                                     .line = take_run_line};
    snprintf(job.device_kind, sizeof job.device_kind, "%s", kind);
    snprintf(job.plugin, sizeof job.plugin, "%s", plugin ? plugin : "");
    if (attach) {
        memcpy(job.attach, attach->text, attach->bytes);
        job.attach_bytes = attach->bytes;
    }
    return run_worker(&job, &hooks, signal_fd, err);
}

int device_describe(const char *kind, int index, int signal_fd, struct device_info *info,
                    struct error *err) {
    struct answer answer = {.info = info};
    memset(info, 0, sizeof *info);
    snprintf(info->kind, sizeof info->kind, "%s", kind);
    info->index = index;
    if (ask(WORKER_DESCRIBE, kind, index, NULL, NULL, signal_fd, &answer, err)) {
        device_info_free(info);
        return -1;
    }
    return 0;
}

int device_plugin_kernels(const struct device_info *info, const char *plugin, int signal_fd,
                          struct record_kernel **kernels, size_t *count, struct error *err) {
    struct device_info said = {0};
    struct answer answer = {.info = &said};
    if (ask(WORKER_DESCRIBE, info->kind, info->index, plugin, NULL, signal_fd, &answer, err)) {
        device_info_free(&said);
        return -1;
    }
    if (said.kernel_count == 0)
        return error_set(err, EXIT_FAILED, "plug-in %.300s: the worker named no kernel", plugin);
    *kernels = said.kernels;
    *count = said.kernel_count;
    return 0;
}

int device_attached_kernel(const struct device_info *info, const struct attach_words *attach,
                           int signal_fd, struct record_kernel **kernels, size_t *count,
                           struct error *err) {
    struct device_info said = {0};
    struct answer answer = {.info = &said};
    if (ask(WORKER_DESCRIBE, info->kind, info->index, NULL, attach, signal_fd, &answer, err) ||
        said.kernel_count == 0) {
        device_info_free(&said);
        return error_set(err, EXIT_FAILED, "attach: the worker named no program");
    }
    *kernels = said.kernels;
    *count = said.kernel_count;
    return 0;
}

int device_choose(const char *command, const char *text, int signal_fd, struct device_info *info,
                  struct error *err) {
    char kind[8];
    int index;
    struct error absent = {0};
    if (text) {
        if (device_parse(command, text, kind, &index, err))
            return -1;
        return device_describe(kind, index, signal_fd, info, err);
    }
    if (device_describe("cuda", 0, signal_fd, info, &absent) == 0)
        return 0;
    if (absent.code == EXIT_INTERRUPTED)
        return error_set(err, absent.code, "%s", absent.text);
    fprintf(stderr, "moesol: no GPU is used: %s\nmoesol: using the CPU\n", absent.text);
    return device_describe("cpu", 0, signal_fd, info, err);
}

int device_ceilings(const struct device_info *info, int signal_fd, struct record_ceiling **ceilings,
                    size_t *count, struct error *err) {
    struct answer answer = {.ceilings = ceilings, .ceiling_count = count};
    *ceilings = NULL;
    *count = 0;
    if (ask(WORKER_CEILINGS, info->kind, info->index, NULL, NULL, signal_fd, &answer, err)) {
        free(*ceilings);
        *ceilings = NULL;
        return -1;
    }
    return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

void sanitise_name(const char *text, char *name, size_t size) {
    size_t used = 0;
    for (; *text && used + 1 < size; text++) {
        bool plain = isascii((unsigned char)*text) && isalnum((unsigned char)*text);
        if (plain)
            name[used++] = (char)tolower((unsigned char)*text);
        else if (used > 0 && name[used - 1] != '-')
            name[used++] = '-';
    }
    while (used > 0 && name[used - 1] == '-')
        used--;
    name[used] = '\0';
    if (used == 0)
        snprintf(name, size, "unnamed");
}

void device_file_name(const struct device_info *info, char *name, size_t size) {
    char model[128];
    sanitise_name(device_short_name(&info->device), model, sizeof model);
    const char *after_vendor = strncmp(model, "nvidia-", 7) == 0 ? model + 7 : model;
    if (info->index > 0)
        snprintf(name, size, "%s-%d", after_vendor, info->index);
    else
        snprintf(name, size, "%s", after_vendor);
}

void device_info_free(struct device_info *info) {
    free(info->kernels);
    info->kernels = NULL;
    info->kernel_count = 0;
}
