/* `moesol list suites|kernels|devices|metrics`: builds the list as JSON, then prints it as it is or
 * as a table of its columns. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../cases/suite.h"
#include "../core/options.h"
#include "../core/output.h"
#include "../kernels/kernel.h"
#include "backend.h"
#include "child.h"
#include "commands.h"
#include "device_choice.h"

/* More GPUs than that are in no machine. */
static const int most_gpus = 64;

/* A text that came from a file or a driver: what is not UTF-8 is left out. */
static json_t *text_or_null(const char *text) {
    json_t *value = text[0] ? json_string(text) : NULL;
    return value ? value : json_null();
}

static json_t *number_or_null(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

static void say_unavailable(json_t *root, const char *what, const char *reason) {
    json_t *list = json_object_get(root, "unavailable");
    if (!list) {
        list = json_array();
        json_object_set_new(root, "unavailable", list);
    }
    json_array_append_new(list,
                          json_pack("{s:s, s:o}", "what", what, "reason", text_or_null(reason)));
}

/* --- the four lists -------------------------------------------------------------------------- */

static int list_suites(json_t *root, json_t *rows, struct error *err) {
    size_t count = 0;
    struct suite *suite = malloc(sizeof *suite);
    char **names = suite ? suite_names(&count) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct error problem = {0};
        if (suite_read(names[i], suite, &problem)) {
            say_unavailable(root, names[i], problem.text);
            continue;
        }
        const struct moe_shape *shape = &suite->cases[0].shape;
        json_array_append_new(
            rows,
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:s}", "name", suite->name, "cases",
                      (json_int_t)suite->case_count, "hidden_size", (json_int_t)shape->hidden_size,
                      "moe_intermediate_size", (json_int_t)shape->moe_intermediate_size,
                      "num_experts", (json_int_t)shape->num_experts, "num_experts_per_tok",
                      (json_int_t)shape->num_experts_per_tok, "title", text_or_null(suite->title),
                      "folder", suite->directory));
    }
    if (names)
        suite_names_free(names);
    free(suite);
    if (count == 0)
        return error_set(err, EXIT_FAILED,
                         "list: no suite found; set MOESOL_DATA to the folder "
                         "that has them");
    return 0;
}

static void add_kernels(json_t *rows, const char *platform, const struct moe_kernel *const *table) {
    for (size_t i = 0; table[i]; i++) {
        const struct moe_kernel *kernel = table[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:b, s:b, s:s, s:s, s:s, s:s}",
                                              "name", kernel->name, "device", platform, "type",
                                              kernel->value_type, "ranked", kernel->ranked,
                                              "library_only", kernel->library_only, "summary",
                                              kernel->summary, "author", kernel->author, "license",
                                              kernel->license, "source", kernel->source));
    }
}

static int list_kernels(json_t *root, json_t *rows, struct error *err) {
    struct error absent = {0};
    const struct backend *cuda = backend_cuda(&absent);
    (void)err;
    add_kernels(rows, "cpu", moe_cpu_kernels);
    if (cuda)
        add_kernels(rows, "cuda", cuda->kernels);
    else
        say_unavailable(root, "cuda kernels", absent.text);
    return 0;
}

static void add_device(json_t *rows, const struct device_info *info) {
    char name[16];
    snprintf(name, sizeof name, strcmp(info->kind, "cpu") ? "%s:%d" : "%s", info->kind,
             info->index);
    const struct device_row *datasheet = device_find(&info->device);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "device", name,
                                          "short_name", device_short_name(&info->device), "name",
                                          text_or_null(info->device.name), "compute_capability",
                                          text_or_null(info->device.compute_capability),
                                          "memory_bytes", number_or_null(info->device.memory_bytes),
                                          "driver", text_or_null(info->device.driver_version),
                                          "datasheet_roofs", datasheet ? datasheet->name : "none"));
}

static int list_devices(json_t *root, json_t *rows, struct error *err) {
    struct device_info info;
    int signal_fd = child_signal_fd(err);
    if (signal_fd < 0 || device_describe("cpu", 0, signal_fd, &info, err))
        return -1;
    add_device(rows, &info);
    device_info_free(&info);
    for (int i = 0; i < most_gpus; i++) {
        struct error absent = {0};
        if (device_describe("cuda", i, signal_fd, &info, &absent)) {
            if (absent.code == EXIT_INTERRUPTED)
                return error_set(err, absent.code, "%s", absent.text);
            if (i == 0)
                say_unavailable(root, "cuda", absent.text);
            return 0;
        }
        add_device(rows, &info);
        device_info_free(&info);
    }
    return 0;
}

static int list_metrics(json_t *root, json_t *rows, struct error *err) {
    static const char *const levels[] = {"basic", "full", "timeline"};
    struct error absent = {0};
    const struct backend *cuda = backend_cuda(&absent);
    (void)err;
    for (size_t level = 0; cuda && cuda->metrics && level < sizeof levels / sizeof *levels;
         level++) {
        const char *const *names;
        int passes = 0;
        if (cuda->metrics(levels[level], &names, &passes, &absent))
            break;
        for (size_t i = 0; names[i]; i++)
            json_array_append_new(rows, json_pack("{s:s, s:i, s:s}", "level", levels[level],
                                                  "passes", passes, "metric", names[i]));
    }
    if (absent.code)
        say_unavailable(root, "cuda metrics", absent.text);
    say_unavailable(root, "cpu metrics", "the CPU back end has no hardware counters");
    return 0;
}

/* --- printing -------------------------------------------------------------------------------- */

/* Columns of the table, in order; the last is not padded. JSON has more keys than the table. */
struct list {
    const char *name;
    int (*fill)(json_t *root, json_t *rows, struct error *err);
    const char *columns[8];
};

static const struct list lists[] = {
    {"suites",
     list_suites,
     {"name", "cases", "hidden_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok",
      "title"}},
    {"kernels", list_kernels, {"name", "device", "type", "ranked", "summary"}},
    {"devices",
     list_devices,
     {"device", "short_name", "compute_capability", "datasheet_roofs", "name"}},
    {"metrics", list_metrics, {"level", "passes", "metric"}},
};
static const size_t list_count = sizeof lists / sizeof *lists;

static void cell_text(const json_t *value, char *text, size_t size) {
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
    else
        snprintf(text, size, "–");
}

/* Columns that a terminal shows: continuation bytes of UTF-8 take none. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_line(const struct list *list, const json_t *row, const int *widths) {
    char text[512];
    for (size_t c = 0; c < 8 && list->columns[c]; c++) {
        bool last = c == 7 || !list->columns[c + 1];
        if (row)
            cell_text(json_object_get(row, list->columns[c]), text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", list->columns[c]);
        printf("%s%*s", text, last ? 0 : widths[c] - width_of(text) + 2, "");
    }
    printf("\n");
}

static void print_table(const struct list *list, const json_t *rows) {
    char text[512];
    int widths[8] = {0};
    size_t i;
    json_t *row;
    for (size_t c = 0; c < 8 && list->columns[c]; c++) {
        widths[c] = width_of(list->columns[c]);
        json_array_foreach(rows, i, row) {
            cell_text(json_object_get(row, list->columns[c]), text, sizeof text);
            widths[c] = width_of(text) > widths[c] ? width_of(text) : widths[c];
        }
    }
    print_line(list, NULL, widths);
    json_array_foreach(rows, i, row) print_line(list, row, widths);
}

static void print_unavailable(const json_t *root) {
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "unavailable"), i, row) {
        char reason[512];
        cell_text(json_object_get(row, "reason"), reason, sizeof reason);
        fprintf(stderr, "moesol: not listed: %s: %s\n",
                json_string_value(json_object_get(row, "what")), reason);
    }
}

static int print_list(const struct list *list, bool json) {
    struct error err = {0};
    json_t *root = json_object(), *rows = json_array();
    json_object_set_new(root, list->name, rows);
    if (list->fill(root, rows, &err)) {
        json_decref(root);
        return error_print(&err);
    }
    if (json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        printf("\n");
    } else {
        print_table(list, rows);
        print_unavailable(root);
    }
    json_decref(root);
    return output_finish(EXIT_OK);
}

int cmd_list(int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    const char *format = "text", *names[sizeof lists / sizeof *lists];
    struct option_list what = {0};
    struct error err = {0};
    int code = EXIT_OK;
    const struct option_row rows[] = {
        option_text("format", 'f', "FORMAT", "text or json (default: text)", &format, formats),
    };
    const struct options options = {"list",
                                    "suites|kernels|devices|metrics [OPTION]...",
                                    "Lists what can be run, on what, and what can be counted.",
                                    NULL,
                                    rows,
                                    1,
                                    1,
                                    1};
    enum options_result result = options_parse(&options, argc, argv, &what, &err);
    size_t i = 0;
    if (result == OPTIONS_HELP) {
        code = options_help(&options);
    } else if (result == OPTIONS_OK) {
        while (i < list_count && strcmp(lists[i].name, what.values[0]))
            i++;
        for (size_t j = 0; j < list_count; j++)
            names[j] = lists[j].name;
        if (i == list_count)
            options_unknown("list", "list", what.values[0], names, list_count, &err);
        else
            code = print_list(&lists[i], strcmp(format, "json") == 0);
    }
    option_list_free(&what);
    return err.code ? error_print(&err) : code;
}
