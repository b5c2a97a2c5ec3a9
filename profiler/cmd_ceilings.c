/* `moesol ceilings`: measures this device's own roofs and prints every variant, the best marked. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/options.h"
#include "../core/output.h"
#include "child.h"
#include "commands.h"
#include "device_choice.h"

static bool is_flop(const struct record_ceiling *ceiling) {
    return strcmp(ceiling->what, "fp16_dense") == 0 || strcmp(ceiling->what, "fp32") == 0;
}

static bool is_best(const struct record_ceiling *ceilings, size_t count, size_t i) {
    for (size_t j = 0; j < count; j++)
        if (strcmp(ceilings[j].what, ceilings[i].what) == 0 &&
            ceilings[j].value > ceilings[i].value)
            return false;
    return true;
}

static int print_text(const struct device_info *info, const struct record_ceiling *ceilings,
                      size_t count) {
    printf("%s\n%-12s %-36s %14s\n", info->device.name, "roof", "variant", "value");
    for (size_t i = 0; i < count; i++) {
        bool flop = is_flop(&ceilings[i]);
        double value = ceilings[i].value;
        const char *unit = flop ? "TFLOP/s" : "TB/s";
        double scale = 1e12;
        if (value < 1e12) {
            unit = flop ? "GFLOP/s" : "GB/s";
            scale = 1e9;
        }
        printf("%-12s %-36s %8.4g %-7s%s\n", ceilings[i].what, ceilings[i].variant, value / scale,
               unit, is_best(ceilings, count, i) ? " *" : "");
    }
    printf("* the best variant: the roof that `measured` bounds use\n");
    return output_finish(EXIT_OK);
}

static int print_json(const struct device_info *info, const struct record_ceiling *ceilings,
                      size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:f, s:s, s:b}", "what", ceilings[i].what,
                                        "variant", ceilings[i].variant, "value", ceilings[i].value,
                                        "unit", is_flop(&ceilings[i]) ? "FLOP/s" : "bytes/s",
                                        "best", is_best(ceilings, count, i)));
    json_t *root = json_pack("{s:s, s:s, s:o}", "kind", info->kind, "device", info->device.name,
                             "ceilings", list);
    if (root) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(root);
    return root ? output_finish(EXIT_OK) : EXIT_FAILED;
}

static int measure(const char *device, bool json) {
    struct error err = {0};
    struct device_info info;
    struct record_ceiling *ceilings = NULL;
    size_t count = 0;
    int signal_fd = child_signal_fd(&err);
    if (signal_fd < 0 || device_choose("ceilings", device, signal_fd, &info, &err))
        return error_print(&err);
    int code;
    if (device_ceilings(&info, signal_fd, &ceilings, &count, &err))
        code = error_print(&err);
    else
        code = json ? print_json(&info, ceilings, count) : print_text(&info, ceilings, count);
    free(ceilings);
    device_info_free(&info);
    return code;
}

int cmd_ceilings(int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    const char *device = NULL, *format = "text";
    const struct option_row rows[] = {
        option_text("device", 'd', "D",
                    "cpu, cuda or cuda:N (default: the first GPU, else the CPU)", &device, NULL),
        option_text("format", 'f', "FORMAT", "text or json (default: text)", &format, formats),
    };
    const struct options options = {
        "ceilings",
        "[OPTION]...",
        "Measures this device's own roofs: bandwidths and arithmetic.",
        "`moesol run` does the same once, and stores the roofs in its records.",
        rows,
        sizeof rows / sizeof *rows,
        0,
        0};
    int code = EXIT_OK;
    if (!options_take(&options, argc, argv, NULL, &code))
        return code;
    return measure(device, strcmp(format, "json") == 0);
}
