/* The HTML pages: every section is there, tags are balanced and ids unique, nothing is loaded,
 * names are text whatever they hold, what is missing is said to be; the palette's contrast as WCAG
 * 2 computes it; digits. What only a browser can tell is in test_html.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>

#include "../analysis/suite_phases.h"
#include "../reports/commands.h"
#include "../reports/digits.h"
#include "../reports/gnuplot.h"
#include "../reports/html.h"
#include "../reports/phase_colours.h"
#include "../reports/svg_embed.h"
#include "made_record.h"

static char folder[64];

/* --- pages --------------------------------------------------------------------------------------
 */

static char *read_page(const char *path) {
    FILE *file = fopen(path, "r");

    if (!file)
        fail_msg("%s was not made", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    text[size] = '\0';
    assert_int_equal(strlen(text), size);
    fclose(file);
    return text;
}

/* Runs a command with its arguments in one line, separated by blanks. */
static int run_line(int (*command)(int, char **), const char *line) {
    static char copy[1024];
    char *argv[64], *rest = copy;
    int argc = 0;

    snprintf(copy, sizeof copy, "%s", line);
    while ((argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    return command(argc, argv);
}

static void make(const struct made *made, const char *path) {
    struct error err = {0};
    if (made_write(made, path, &err) != 0)
        fail_msg("%s", err.text);
}

static void need_gnuplot(void) {
    if (gnuplot_available())
        return;
    print_message("skipped: no gnuplot in PATH\n");
    skip();
}

static size_t count_of(const char *text, const char *what) {
    size_t count = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

static void must_hold(const char *page, const char *what) {
    if (!strstr(page, what))
        fail_msg("the page has no '%s'", what);
}

static void must_not_hold(const char *page, const char *what) {
    const char *found = strstr(page, what);
    if (found)
        fail_msg("the page holds '%s': %.100s", what, found);
}

static bool is_void(const char *name) {
    static const char *const names[] = {"meta", "link", "br", "hr", "img", "input", "wbr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The end of a tag, quoted values skipped. */
static const char *tag_end(const char *tag) {
    char quote = '\0';

    for (; *tag && (*tag != '>' || quote); tag++) {
        if (quote)
            quote = *tag == quote ? '\0' : quote;
        else if (*tag == '"' || *tag == '\'')
            quote = *tag;
    }
    return tag;
}

/* Every tag that is opened is closed, in order. The text of script and style is no markup. */
static void tags_are_balanced(const char *page) {
    static char open[64][16];
    size_t depth = 0;

    for (const char *at = strchr(page, '<'); at; at = strchr(at, '<')) {
        bool closes = at[1] == '/';
        const char *start = at + 1 + closes, *end = tag_end(at);
        char name[16] = "";
        size_t length =
            strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        at = *end ? end + 1 : end;
        if (start[0] == '!')
            continue;
        if (length == 0 || length >= sizeof name)
            fail_msg("a stray '<': %.60s", start - 1);
        memcpy(name, start, length);
        if (closes) {
            if (depth == 0 || strcmp(open[depth - 1], name) != 0)
                fail_msg("</%s> closes <%s>: %.80s", name, depth ? open[depth - 1] : "", start);
            depth--;
        } else if (end[-1] != '/' && !is_void(name)) {
            assert_true(depth < 64);
            memcpy(open[depth++], name, sizeof name);
        }
        if (!closes && strcmp(name, "script") == 0)
            at = strstr(at, "</script>");
        else if (!closes && strcmp(name, "style") == 0)
            at = strstr(at, "</style>");
    }
    if (depth != 0)
        fail_msg("<%s> is never closed", open[depth - 1]);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void ids_are_unique(const char *page) {
    size_t count = 0, most = count_of(page, " id=") + 1;
    char **ids = calloc(most, sizeof *ids);

    assert_non_null(ids);
    for (const char *at = strstr(page, " id="); at; at = strstr(at + 1, " id="))
        if (at[4] == '"' || at[4] == '\'')
            ids[count++] = strndup(at + 5, strcspn(at + 5, "\"'"));
    qsort(ids, count, sizeof *ids, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(ids[i], ids[i - 1]) == 0)
            fail_msg("two elements have the id %s", ids[i]);
    /* Links inside the page lead somewhere. */
    for (const char *at = strstr(page, "<a href=\"#"); at; at = strstr(at + 1, "<a href=\"#")) {
        char *id = strndup(at + 10, strcspn(at + 10, "\""));
        if (!bsearch(&id, ids, count, sizeof *ids, by_text) && strcmp(id, "main") != 0)
            fail_msg("a link leads to #%s, which is not there", id);
        free(id);
    }
    for (size_t i = 0; i < count; i++)
        free(ids[i]);
    free(ids);
}

static void page_is_sound(const char *page) {
    static const char *const loading[] = {" src=",       "url(http",   "@import",    "http://",
                                          "href=\"http", "href='http", "srcset",     "<iframe",
                                          " onclick=",   " onload=",   "javascript:"};

    for (size_t i = 0; i < sizeof loading / sizeof *loading; i++)
        must_not_hold(page, loading[i]);
    tags_are_balanced(page);
    ids_are_unique(page);
    must_not_hold(page, "Gnuplot");
    must_not_hold(page, "nan");
}

static const char *const section_ids[] = {"measured",  "notes",       "bounds",      "roofline",
                                          "latency",   "shares",      "phases",      "timeline",
                                          "waterfall", "findings",    "counters",    "routing",
                                          "telemetry", "correctness", "environment", "reproduce"};

static void one_record_has_every_section(void **state) {
    struct made made = made_good();
    char text[64];

    (void)state;
    need_gnuplot();
    made.cases = 5;
    make(&made, "a.jsonl");
    assert_int_equal(run_line(cmd_report, "report a.jsonl --format html -o one"), EXIT_OK);
    char *page = read_page("one/index.html");
    page_is_sound(page);
    const char *last = page;
    for (size_t i = 0; i < sizeof section_ids / sizeof *section_ids; i++) {
        snprintf(text, sizeof text, "<section id=\"%s\">", section_ids[i]);
        const char *found = strstr(last, text);
        if (!found)
            fail_msg("no section %s, or out of order", section_ids[i]);
        last = found;
    }
    assert_int_equal(count_of(page, "<svg class=\"plot"), 5);
    /* The latency picture and the tables name the same cases. */
    assert_true(count_of(page, "data-key=\"0-5\"") >= 6);
    assert_true(count_of(page, "data-key=\"0-gate_up\"") >= 2);
    must_hold(page, "prefers-color-scheme: dark");
    must_hold(page, "@media print");
    must_hold(page, "moesol report a.jsonl --format html -o DIR");
    free(page);
}

/* Headline figures are the analysis' own. */
static void figures_are_the_analysis_own(void **state) {
    struct record record;
    struct summary summary;
    struct error err = {0};
    char text[64];

    (void)state;
    need_gnuplot();
    assert_int_equal(record_read("a.jsonl", &record, &err), 0);
    assert_int_equal(summarize_record(&record, &summary, &err), 0);
    struct suite_means means = summary_means(&summary);
    char *page = read_page("one/index.html");
    snprintf(text, sizeof text, "<strong>%.1f</strong> %%", means.fraction[BOUND_DATASHEET] * 100);
    must_hold(page, text);
    free(page);
    size_t count;
    struct suite_phase *phases = suite_phases(&summary, &count, &err);
    assert_non_null(phases);
    assert_int_equal(count, 6);
    double sum_ns = 0, share = 0;
    for (size_t i = 0; i < count; i++) {
        sum_ns += phases[i].mean_ns;
        share += phases[i].share;
        assert_int_equal(phases[i].case_count, 5);
    }
    assert_true(fabs(sum_ns + 20e3 - means.mean_ns) < 0.002 * means.mean_ns);
    assert_true(share > 0.99 && share < 1.001);
    assert_true(isnan(phases[0].bytes_per_s)); /* route has no model */
    assert_true(phases[2].flop_per_s > 0 && phases[2].fraction > 0.9 && phases[2].fraction < 1);
    free(phases);
    summary_free(&summary);
    record_free(&record);
}

static void several_records_make_a_comparison(void **state) {
    struct made made = made_good();
    char text[64];

    (void)state;
    need_gnuplot();
    made.cases = 5;
    made.kernel = "made-slower";
    made.speed = 1.25;
    make(&made, "b.jsonl");
    assert_int_equal(run_line(cmd_report, "report a.jsonl b.jsonl --format html -o two"), EXIT_OK);
    char *page = read_page("two/index.html");
    page_is_sound(page);
    must_hold(page, "<h1>2 records compared</h1>");
    must_hold(page, "<section id=\"compare\">");
    must_hold(page, "<section id=\"compare-roofline\">");
    must_hold(page, "<section id=\"compare-latency\">");
    must_hold(page, "<section id=\"compare-difference\">");
    must_hold(page, "SLOWER");
    must_hold(page, "<td>1.25</td>"); /* the ratio */
    for (size_t i = 0; i < sizeof section_ids / sizeof *section_ids; i++) {
        snprintf(text, sizeof text, "<section id=\"r2-%s\">", section_ids[i]);
        must_hold(page, text);
    }
    assert_true(count_of(page, "data-key=\"1-5\"") >= 6);
    assert_int_equal(count_of(page, "<svg class=\"plot"), 3 + 2 * 5);
    free(page);
}

/* What was not measured is said to be missing, and no picture of nothing is drawn. */
static void what_is_missing_is_said(void **state) {
    struct made made = made_good();

    (void)state;
    need_gnuplot();
    made.cases = 2;
    made.status = STATUS_CRASHED;
    made.level = "none";
    make(&made, "crashed.jsonl");
    assert_int_equal(run_line(cmd_report, "report crashed.jsonl -f html -o crashed"), EXIT_OK);
    char *page = read_page("crashed/index.html");
    page_is_sound(page);
    assert_int_equal(count_of(page, "<svg class=\"plot"), 0);
    must_hold(page, "No case has a latency.");
    must_hold(page, "The kernel names no phases.");
    must_hold(page, "No waterfall");
    must_hold(page, "None were taken");
    must_hold(page, "<strong>–</strong>");
    free(page);
}

/* An unknown device has no roof, and one without ceilings none at all: the page is made. */
static void a_device_without_roofs_has_a_page(void **state) {
    struct made made = made_good();

    (void)state;
    need_gnuplot();
    made.device = "Made Device 1";
    made.no_ceilings = true;
    make(&made, "roofless.jsonl");
    assert_int_equal(run_line(cmd_report, "report roofless.jsonl -f html -o roofless"), EXIT_OK);
    char *page = read_page("roofless/index.html");
    page_is_sound(page);
    must_hold(page, "No roofline");
    must_hold(page, "No roof was measured.");
    free(page);
}

static void names_stay_text(void **state) {
    struct made made = made_good();
    static const char *const forbidden[] = {"<script>alert", "<b>", "<img", "\x1b"};

    (void)state;
    need_gnuplot();
    made.cases = 2;
    made.kernel = "<script>alert(1)</script>\"><b>`touch owned`\x1b[31m</svg>";
    made.phases[1] = "gather'\"><b></svg><img x onerror=\"y\">";
    made.phases[5] = "combine</title><script>alert(2)";
    made.throttle_reasons = "\"><b>hot</b>";
    made.suite = "../<b>made</b>";
    make(&made, "hostile.jsonl");
    for (int several = 0; several < 2; several++) {
        assert_int_equal(
            run_line(cmd_report, several ? "report hostile.jsonl hostile.jsonl -f html -o hostile"
                                         : "report hostile.jsonl -f html -o hostile"),
            EXIT_OK);
        char *page = read_page("hostile/index.html");
        for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
            must_not_hold(page, forbidden[i]);
        tags_are_balanced(page);
        ids_are_unique(page);
        assert_int_equal(count_of(page, "<script"), 1);
        free(page);
    }
    assert_int_not_equal(access("owned", F_OK), 0);
}

static void wrong_usage_is_refused(void **state) {
    (void)state;
    assert_int_equal(run_line(cmd_report, "report a.jsonl --format html"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_report, "report a.jsonl --format html -o -"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_report, "report missing.jsonl --format html -o m"), EXIT_USAGE);
    assert_int_not_equal(access("m", F_OK), 0);
    if (!gnuplot_available())
        return;
    assert_int_not_equal(run_line(cmd_report, "report a.jsonl --format html -o a.jsonl"), EXIT_OK);
    assert_int_equal(access("a.jsonl", R_OK), 0);
}

/* Pictures are no option of the page: without gnuplot there is an error, no page without them. */
static void without_gnuplot_there_is_an_error(void **state) {
    char *path = strdup(getenv("PATH"));
    struct made made = made_good();

    (void)state;
    make(&made, "a.jsonl");
    setenv("PATH", "/nowhere", 1);
    int code = run_line(cmd_report, "report a.jsonl --format html -o without");
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(code, EXIT_FAILED);
}

/* --- leaderboard --------------------------------------------------------------------------------
 */

static void rows_open_their_reports(void **state) {
    struct made made = made_good();

    (void)state;
    need_gnuplot();
    made.suite = "synthetic";
    made.cases = 1;
    make(&made, "entry.jsonl");
    made.kernel = "<b>made/../x";
    make(&made, "entry2.jsonl");
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard synthetic -r entry.jsonl -r "
                                               "entry2.jsonl --format html -o board"),
                     EXIT_OK);
    char *page = read_page("board/index.html");
    page_is_sound(page);
    must_hold(page, "<a href=\"H200-made-kernel-1/index.html\">made-kernel</a>");
    free(page);
    page = read_page("board/H200-made-kernel-1/index.html");
    must_hold(page, "<h1>made-kernel on NVIDIA H200</h1>");
    free(page);
    free(read_page("board/H200--b-made-..-x-2/index.html"));
    /* A name that ends so is a page alone. */
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard synthetic -r entry.jsonl --format html "
                                               "-o alone.html"),
                     EXIT_OK);
    page = read_page("alone.html");
    page_is_sound(page);
    must_not_hold(page, "index.html");
    free(page);
}

/* --- palette ------------------------------------------------------------------------------------
 */

static double channel(const char *hex) {
    char two[3] = {hex[0], hex[1], '\0'};
    double value = (double)strtol(two, NULL, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

/* Relative luminance of "#rrggbb", as WCAG 2 defines it. */
static double luminance(const char *colour) {
    assert_int_equal(strlen(colour), 7);
    return 0.2126 * channel(colour + 1) + 0.7152 * channel(colour + 3) +
           0.0722 * channel(colour + 5);
}

static double contrast(const char *a, const char *b) {
    double one = luminance(a), other = luminance(b);
    return (fmax(one, other) + 0.05) / (fmin(one, other) + 0.05);
}

static const char *colour_of(const char *name, bool dark) {
    for (size_t i = 0; i < html_colour_count; i++)
        if (strcmp(html_colours[i].name, name) == 0)
            return dark ? html_colours[i].dark : html_colours[i].light;
    fail_msg("no colour %s", name);
    return NULL;
}

static void check_contrast(const char *what, const char *a, const char *b, double least) {
    double ratio = contrast(a, b);
    if (ratio < least)
        fail_msg("%s: %s on %s has %.2f:1, not %.1f:1", what, a, b, ratio, least);
}

static void contrast_is_enough(void **state) {
    static const char *const texts[] = {"--ink", "--muted", "--axis", "--link"};
    static const char *const lines[] = {"--brown", "--purple", "--red"};
    static const char *const grounds[] = {"--paper", "--card", "--hot"};

    (void)state;
    assert_true(fabs(contrast("#000000", "#ffffff") - 21) < 1e-9);
    assert_true(fabs(contrast("#777777", "#ffffff") - 4.48) < 0.005);
    for (int dark = 0; dark < 2; dark++) {
        const char *paper = colour_of("--paper", dark);
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            for (size_t g = 0; g < sizeof grounds / sizeof *grounds; g++)
                check_contrast(texts[t], colour_of(texts[t], dark), colour_of(grounds[g], dark),
                               4.5);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            check_contrast(lines[i], colour_of(lines[i], dark), paper, 3);
        for (size_t i = 0; i < phase_colour_count; i++)
            check_contrast(phase_colours[i].phase, phase_colours[i].colour, paper, 3);
        for (size_t r = 0; r < 8; r++)
            check_contrast("record", record_colour(r), paper, 3);
        check_contrast("unknown phase", phase_colour("?"), paper, 3);
    }
}

/* Every phase that a kernel may name has a colour of its own; a fused one that of a part. */
static void phases_have_their_colours(void **state) {
    (void)state;
    for (size_t i = 0; i < moe_phase_name_count; i++) {
        assert_string_not_equal(phase_colour(moe_phase_names[i]), phase_colour("?"));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(phase_colour(moe_phase_names[i]),
                                    phase_colour(moe_phase_names[j]));
    }
    assert_string_equal(phase_colour("gate_up+swiglu"), phase_colour("gate_up"));
    assert_string_equal(phase_colour("down+combine"), phase_colour("down"));
}

static void style_uses_known_colours(void **state) {
    (void)state;
    for (const char *at = strstr(html_style, "var("); at; at = strstr(at + 1, "var(")) {
        char *name = strndup(at + 4, strcspn(at + 4, ")"));
        colour_of(name, false);
        free(name);
    }
}

/* --- pieces -------------------------------------------------------------------------------------
 */

static void digits_follow_the_uncertainty(void **state) {
    (void)state;
    assert_string_equal(measured_text(9.93612, 0.06).s, "9.94");
    assert_string_equal(measured_text(9.93612, 0.012).s, "9.936");
    assert_string_equal(measured_text(29.4911, 0.4).s, "29.5");
    assert_string_equal(measured_text(29.4911, 4).s, "29");
    assert_string_equal(measured_text(294.911, 40).s, "295");
    assert_string_equal(measured_text(1.5, NAN).s, "1.500");
    assert_string_equal(measured_text(1.5, 0).s, "1.500");
    assert_string_equal(measured_text(NAN, 0.1).s, "–");
    assert_string_equal(measured_text(1.23456789, 1e-9).s, "1.2346");
    assert_string_equal(uncertainty_text(0.0123).s, "0.012");
}

static void gnuplots_svg_becomes_the_pages(void **state) {
    static const char svg[] =
        "<?xml version=\"1.0\"?>\n<svg width=\"9\" xmlns=\"http://www.w3.org/2000/svg\">\n"
        "<title>Gnuplot</title><desc>made by</desc><defs><circle id='gpDot' r='1'/></defs>"
        "<g id=\"gnuplot_plot_1\" class='c'><title>x</title><use xlink:href='#gpDot' "
        "color='black'/>"
        "<path stroke='rgb( 68,  68,  68)' fill=\"#FFFFFF\"/><path stroke='rgb(0,114,178)'/>"
        "<g filter='url(#textbox)'><text>black id='x' &lt;b></text></g></g></svg>\n";
    struct svg_marks marks = {0};
    char text[2048];
    FILE *page = fmemopen(text, sizeof text, "w");

    (void)state;
    struct svg_mark *mark = svg_mark_point(&marks, 20, 30);
    snprintf(mark->key, sizeof mark->key, "0-\"1");
    snprintf(mark->tip, sizeof mark->tip, "<b>");
    const struct svg_picture picture = {"p", "a \"b\"", 100, 50, &marks};
    svg_write(page, svg, &picture);
    fclose(page);
    svg_marks_free(&marks);
    must_hold(text, "viewBox=\"0 0 100 50\" aria-label=\"a &quot;b&quot;\"");
    must_hold(text, "<circle id='p-gpDot' r='1'/>");
    must_hold(text, "<g class='c'><use"); /* gnuplot gives two plots of a canvas one id */
    must_hold(text, "<use xlink:href='#p-gpDot' color='var(--ink)'/>");
    must_hold(text, "<path stroke='var(--axis)' fill=\"var(--paper)\"/>");
    must_hold(text, "stroke='rgb(0,114,178)'");
    must_hold(text, "filter='url(#p-textbox)'");
    must_hold(text, "<text>black id='x' &lt;b></text>");
    must_hold(text, "x=\"11.0\" y=\"21.0\"");
    must_hold(text, "data-key=\"0-&quot;1\"><title>&lt;b&gt;</title></rect>");
    must_not_hold(text, "Gnuplot");
    must_not_hold(text, "made by");
    must_not_hold(text, "xmlns");
    tags_are_balanced(text);
}

/* --- set-up -------------------------------------------------------------------------------------
 */

static const char suite_json[] =
    "{\"name\": \"synthetic\", \"title\": \"One case for the tests\", \"ranked\": false,\n"
    " \"seed\": 47, \"routing\": {\"kind\": \"uniform\"},\n"
    " \"hidden_size\": 8192, \"moe_intermediate_size\": 2048, \"num_experts\": 256,\n"
    " \"num_experts_per_tok\": 8, \"matched_ratio\": 0.99, \"token_matched_ratio\": 0.9,\n"
    " \"cases\": [{\"case\": 1, \"batch_seq_len\": 2048, \"atol\": 0.0014, \"rtol\": 0.01}]}\n";

static void copy_devices(const char *from) {
    char path[1024];
    FILE *file = fopen("cases/devices.csv", "w");

    snprintf(path, sizeof path, "%s/cases/devices.csv", from);
    char *text = read_page(path);
    fputs(text, file);
    fclose(file);
    free(text);
}

static int set_up(void **state) {
    char source[512];

    (void)state;
    snprintf(folder, sizeof folder, "/tmp/moesol-html-XXXXXX");
    if (!getcwd(source, sizeof source) || !mkdtemp(folder) || chdir(folder) != 0 ||
        mkdir("cases", 0777) != 0 || mkdir("cases/synthetic", 0777) != 0)
        return -1;
    setenv("MOESOL_DATA", folder, 1);
    copy_devices(source);
    FILE *file = fopen("cases/synthetic/suite.json", "w");
    fputs(suite_json, file);
    return fclose(file);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    if (getenv("MOESOL_TEST_KEEP"))
        return 0;
    return chdir("/") != 0 || nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_record_has_every_section),
        cmocka_unit_test(figures_are_the_analysis_own),
        cmocka_unit_test(several_records_make_a_comparison),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_device_without_roofs_has_a_page),
        cmocka_unit_test(names_stay_text),
        cmocka_unit_test(wrong_usage_is_refused),
        cmocka_unit_test(without_gnuplot_there_is_an_error),
        cmocka_unit_test(rows_open_their_reports),
        cmocka_unit_test(contrast_is_enough),
        cmocka_unit_test(phases_have_their_colours),
        cmocka_unit_test(style_uses_known_colours),
        cmocka_unit_test(digits_follow_the_uncertainty),
        cmocka_unit_test(gnuplots_svg_becomes_the_pages),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
