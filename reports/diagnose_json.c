/* The diagnosis as JSON: {"cases": [...], "suite": {...}}; null where something is not known. */
#include "diagnose.h"
#include "json_out.h"

static json_t *steps_array(const struct waterfall *waterfall) {
    json_t *array = json_array();

    for (int s = 0; s < STEP_COUNT; s++) {
        const struct waterfall_step_size *step = &waterfall->steps[s];
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:o, s:o}", "name", waterfall_rows[s].name,
                                        "ms", json_number(step->ns / 1e6), "percent",
                                        json_number(step->ns / waterfall->latency_ns * 100), "from",
                                        json_text(step->from)));
    }
    return array;
}

static json_t *findings_array(const struct findings *findings) {
    json_t *array = json_array();

    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        json_array_append_new(
            array, json_pack("{s:s, s:o, s:o, s:o, s:o}", "rule", finding->rule->name, "ms",
                             json_number(finding->ns / 1e6), "seen", json_text(finding->seen),
                             "means", json_text(finding->means), "try", json_text(finding->try_)));
    }
    return array;
}

static void fill(json_t *object, const struct waterfall *waterfall,
                 const struct findings *findings) {
    json_object_set_new(object, "latency_ms", json_number(waterfall->latency_ns / 1e6));
    json_object_set_new(object, "t_sol_ms", json_number(waterfall->t_sol_ns / 1e6));
    json_object_set_new(object, "bound", json_text(waterfall->bound));
    json_object_set_new(object, "steps", steps_array(waterfall));
    json_object_set_new(object, "findings", findings_array(findings));
}

static int write_json(FILE *file, const struct diagnose_report *report) {
    const struct diagnosis *diagnosis = report->diagnosis;
    json_t *cases = json_array(), *suite = json_object();

    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct case_diagnosis *one = &diagnosis->cases[i];
        if (!report->wanted[i])
            continue;
        json_t *object = json_pack("{s:i}", "case", one->summary_case->number);
        fill(object, &one->waterfall, &one->findings);
        json_array_append_new(cases, object);
    }
    fill(suite, &diagnosis->suite, &diagnosis->suite_findings);
    json_object_set_new(suite, "cases", json_integer((json_int_t)diagnosis->suite_count));
    return json_write(file, json_pack("{s:o, s:o}", "cases", cases, "suite", suite));
}

const struct diagnose_format diagnose_json = {"json", write_json};
