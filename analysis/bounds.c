/* The bounds of the README's section on numbers. The constants of `published` are those with which
 * its formula gives all 16 public B200 values of the source benchmark. */
#include "bounds.h"

#include <math.h>
#include <stdio.h>

static const double published_overhead_ns = 400;
static const struct roofs published_roofs = {7.6674e12, 1.811252e15};

double roofs_time_ns(const struct roofs *roofs, const struct moe_work *work) {
    double memory_ns = work->bytes / roofs->bytes_per_s * 1e9;
    double math_ns = work->flop / roofs->flop_per_s * 1e9;

    if (isnan(memory_ns) || isnan(math_ns))
        return NAN;
    return memory_ns > math_ns ? memory_ns : math_ns;
}

/* Work by the shape alone: every expert hit, every slot valid. */
static struct moe_work shape_work(const struct moe_shape *shape) {
    struct moe_routing all = {.valid_slots = shape->batch_seq_len * shape->num_experts_per_tok,
                              .experts_hit = shape->num_experts};
    return moe_case_work(shape, &all);
}

static double published_ns(const struct bound_inputs *inputs) {
    struct moe_work work = shape_work(&inputs->shape);
    return published_overhead_ns + roofs_time_ns(&published_roofs, &work);
}

static double datasheet_ns(const struct bound_inputs *inputs) {
    return roofs_time_ns(&inputs->datasheet, &inputs->work);
}

static double measured_ns(const struct bound_inputs *inputs) {
    return roofs_time_ns(&inputs->measured, &inputs->work);
}

static double phased_ns(const struct bound_inputs *inputs) {
    double sum_ns = 0;

    for (size_t i = 0; i < inputs->phase_count; i++)
        sum_ns += roofs_time_ns(&inputs->measured, &inputs->phases[i].work);
    return inputs->phase_count > 0 ? sum_ns : NAN;
}

static void explain_roofs(const struct roofs *roofs, const struct moe_work *work, char *text,
                          size_t size) {
    double memory_ms = work->bytes / roofs->bytes_per_s * 1e3;
    double math_ms = work->flop / roofs->flop_per_s * 1e3;

    snprintf(text, size,
             "max(%.6g GB / %.5g TB/s, %.6g TFLOP / %.5g TFLOP/s) = max(%.6f, %.6f) ms, %s-bound",
             work->bytes / 1e9, roofs->bytes_per_s / 1e12, work->flop / 1e12,
             roofs->flop_per_s / 1e12, memory_ms, math_ms,
             memory_ms > math_ms ? "memory" : "compute");
}

static void explain_published(const struct bound_inputs *inputs, char *text, size_t size) {
    struct moe_work work = shape_work(&inputs->shape);
    char roofs_text[256];

    explain_roofs(&published_roofs, &work, roofs_text, sizeof roofs_text);
    snprintf(text, size, "%g ms + %s", published_overhead_ns / 1e6, roofs_text);
}

static void explain_datasheet(const struct bound_inputs *inputs, char *text, size_t size) {
    explain_roofs(&inputs->datasheet, &inputs->work, text, size);
}

static void explain_measured(const struct bound_inputs *inputs, char *text, size_t size) {
    explain_roofs(&inputs->measured, &inputs->work, text, size);
}

static void explain_phased(const struct bound_inputs *inputs, char *text, size_t size) {
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < inputs->phase_count && used < size; i++) {
        const struct bound_phase *phase = &inputs->phases[i];
        double term_ns = roofs_time_ns(&inputs->measured, &phase->work);
        int wrote = snprintf(text + used, size - used, "%s%s %.6f", i > 0 ? " + " : "", phase->name,
                             term_ns / 1e6);
        if (wrote < 0)
            return;
        used += (size_t)wrote;
    }
}

const struct bound bounds[BOUND_COUNT] = {
    [BOUND_PUBLISHED] = {"published",
                         "0.0004 ms + max((W + 4TH B) / 7.6674e12 B/s, 6TKHI FLOP / 1.811252e15 "
                         "FLOP/s)",
                         "the source benchmark's own B200 model: by the shape only, all experts "
                         "hit",
                         published_ns, explain_published},
    [BOUND_DATASHEET] = {"datasheet", "max(compulsory bytes / BW, FLOP / peak)",
                         "roofs of the device's datasheet, found by its exact name", datasheet_ns,
                         explain_datasheet},
    [BOUND_MEASURED] = {"measured", "max(compulsory bytes / BW, FLOP / peak)",
                        "roofs that `moesol ceilings` measured on that very device", measured_ns,
                        explain_measured},
    [BOUND_PHASED] = {"phased", "sum over phases of max(phase bytes / BW, phase FLOP / peak)",
                      "the best that the kernel's own split into phases can do at the measured "
                      "roofs",
                      phased_ns, explain_phased},
};

void bound_explain(enum bound_kind kind, const struct bound_inputs *inputs, char *text,
                   size_t size) {
    const struct bound *bound = &bounds[kind];
    double t_sol_ns = bound->t_sol_ns(inputs);
    char numbers[1024];

    if (isnan(t_sol_ns)) {
        snprintf(text, size, "%s: %s: not known here (%s)", bound->name, bound->formula,
                 bound->meaning);
        return;
    }
    bound->explain(inputs, numbers, sizeof numbers);
    snprintf(text, size, "%s: %s = %s; T_SOL = %.6f ms", bound->name, bound->formula, numbers,
             t_sol_ns / 1e6);
}
