#!/usr/bin/env python3
"""What only a browser can tell of the HTML pages: makes pages from synthetic records with the command
in $MOESOL and looks at them in headless Chromium. Started by test_html.sh."""
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chromium import Chromium  # noqa: E402

MOESOL = os.path.abspath(os.environ["MOESOL"])
PHASES = {"route": 0.004, "gather": 0.02, "gate_up": 0.62, "swiglu": 0.02, "down": 0.31,
          "combine": 0.02}
TOKENS = [2213, 2048, 2080, 2112, 2144, 3072, 2176, 2208, 2240, 2272, 2304, 2336, 8192, 2368, 6144,
          4096]
WIDTHS = (360, 1400)
passed = failed = 0


def check(condition, what):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print("FAILED:", what)


# --- synthetic records ---------------------------------------------------------------------------

def run_line(kernel):
    return {"schema": "1.0", "type": "run", "tool_version": "0", "source_revision": "synthetic",
            "host": "synthetic", "command": "moesol run synthetic --kernel " + kernel,
            "started_at": "2026-01-01T00:00:00Z", "suite_name": "synthetic",
            "suite_case_count": len(TOKENS), "seed": 1, "clocks_policy": "unchanged",
            "counters_level": "basic", "round_count": 2, "back_to_back": False,
            "device": {"kind": "cuda", "name": "NVIDIA H200", "sm_count": 132,
                       "power_limit_w": 700},
            "kernel": {"name": kernel, "author": "Synthetic Author With A Long Name",
                       "license": "MIT", "source": "synthetic/" + "long_" * 20 + ".cu",
                       "value_type": "fp16", "ranked": True},
            "ceilings": [{"what": "dram_read", "variant": "synthetic", "value": 4.58e12},
                         {"what": "fp16_dense", "variant": "synthetic", "value": 7.2e14}]}


def case_line(number, tokens, round_number, speed):
    latency = speed * max(1.3 * (25.77e9 / 4.58e3), 2.2 * 805306368 * tokens / 7.2e5)
    samples = [latency * (1 + 0.002 * math.sin(7 * i + number + round_number)) for i in range(31)]
    return {"type": "case", "case": number, "round": round_number, "batch_seq_len": tokens,
            "hidden_size": 8192, "moe_intermediate_size": 2048, "num_experts": 256,
            "num_experts_per_tok": 8, "atol": 0.002, "rtol": 0.01, "valid_slots": 8 * tokens,
            "experts_hit": 256, "rows_min": tokens // 50, "rows_median": tokens // 32,
            "rows_max": tokens // 20, "status": "ok", "samples_ns": samples,
            "event_ns": latency, "gap_ns": latency * 0.005, "launch_count": 9,
            "correctness": {"checked": True, "matched_ratio": 0.9999,
                            "token_matched_ratio_min": 0.99, "max_abs_error": 0.001,
                            "tokens_checked": tokens},
            "telemetry": {"sm_clock_mhz_min": 1400, "sm_clock_mhz_median": 1450,
                          "sm_clock_mhz_max": 1500, "power_w_median": 690, "power_w_max": 720,
                          "temperature_c_max": 60, "throttle_reasons": "sw_power_cap"},
            "phases": [{"name": name, "samples_ns": [share * s for s in samples], "gap_ns": 0}
                       for name, share in PHASES.items()]}


def counters_line(number):
    return {"type": "counters", "case": number, "level": "basic", "pass_count": 1,
            "phases": [{"name": name, "metrics": {"dram__bytes_read.sum": share * 3e10,
                                                  "gpu__time_duration.sum": share * 1e7}}
                       for name, share in PHASES.items()]}


def timeline_line(number, tokens):
    """Samples of an iteration of one launch a phase, every 100 µs."""
    span = 8e6 * tokens / 2048
    shares = list(PHASES.values())
    starts = [sum(shares[:i]) * span for i in range(len(shares))]
    count = int(span / 1e5)
    wave = [math.sin(i / 3) for i in range(count)]
    series = {"dram__bytes_read.sum": [4e12 * 1e-4 * (0.9 + 0.1 * w) for w in wave],
              "dram__bytes_write.sum": [3e11 * 1e-4 * (1 + w) for w in wave],
              "sm__cycles_active.avg.pct_of_peak_sustained_elapsed": [97 + w for w in wave],
              "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed":
                  [45 + 9 * w for w in wave],
              "sm__cycles_elapsed.avg.per_second": [1.6e9 + 4e8 * w for w in wave]}
    return {"type": "timeline", "case": number, "source": "sampling", "span_ns": span,
            "launch_total": len(shares), "phases": [{"name": name} for name in PHASES],
            "kinds": [{"name": "synthetic_kernel"}], "launch_phases": list(range(len(shares))),
            "launch_kinds": [0] * len(shares), "launch_start_ns": starts,
            "launch_ns": [share * span for share in shares], "interval_asked_ns": 1e5,
            "interval_ns": 1e5, "alignment": "timestamps",
            "sample_start_ns": [i * 1e5 for i in range(count)],
            "sample_end_ns": [(i + 1) * 1e5 for i in range(count)],
            "series": [{"name": name, "values": values} for name, values in series.items()]}


def write_record(path, kernel, speed):
    lines = [run_line(kernel)]
    for round_number in range(2):
        lines += [case_line(i + 1, t, round_number, speed) for i, t in enumerate(TOKENS)]
    lines += [counters_line(i + 1) for i in range(len(TOKENS))]
    lines += [timeline_line(i + 1, TOKENS[i]) for i in (1, 12)]
    lines.append({"type": "end", "status": "complete", "finished_at": "2026-01-01T00:01:00Z"})
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def make(*arguments):
    result = subprocess.run([MOESOL, *arguments], capture_output=True, text=True, check=False)
    check(result.returncode == 0, f"moesol {' '.join(arguments)}: {result.stderr}")
    return result.stdout.strip()


# --- looking at a page ---------------------------------------------------------------------------

# Elements that stick out of the page; what lies in a frame that scrolls may.
OFF_SCREEN = """(() => {
  const out = [], width = document.documentElement.clientWidth;
  for (const one of document.body.querySelectorAll('*')) {
    if (one.closest('.scroll') && !one.classList.contains('scroll')) continue;
    if (one.classList.contains('skip')) continue;
    const box = one.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1))
      out.push(one.tagName + '.' + one.className + ' ' + Math.round(box.right));
  }
  if (document.documentElement.scrollWidth > width) out.push('the page scrolls sideways');
  return out.slice(0, 5);
})()"""

# Texts of one picture whose boxes overlap.
OVERLAPS = r"""(() => {
  const out = [];
  for (const plot of document.querySelectorAll('svg.plot')) {
    const texts = [...plot.querySelectorAll('text')].filter(one => one.textContent.trim());
    const boxes = texts.map(one => one.getBoundingClientRect());
    for (let i = 0; i < texts.length; i++)
      for (let j = 0; j < i; j++) {
        const a = boxes[i], b = boxes[j];
        // gnuplot draws a label with a ground twice, in one place.
        if (texts[i].textContent === texts[j].textContent && a.left === b.left && a.top === b.top)
          continue;
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 1 && y > 0.35 * Math.min(a.height, b.height))
          out.push(plot.getAttribute('aria-label') + ': ' + texts[i].textContent.trim() + ' / ' +
                   texts[j].textContent.trim());
      }
  }
  return out.slice(0, 5);
})()"""

# Texts that a picture's edge cuts.
CUT = """(() => {
  const out = [];
  for (const plot of document.querySelectorAll('svg.plot')) {
    const frame = plot.getBoundingClientRect();
    for (const one of plot.querySelectorAll('text')) {
      const box = one.getBoundingClientRect();
      if (box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                            box.top < frame.top - 1 || box.bottom > frame.bottom + 1))
        out.push(plot.getAttribute('aria-label') + ': ' + one.textContent.trim());
    }
  }
  return out.slice(0, 5);
})()"""

# Contrast of every text with what it stands on, as WCAG 2 computes it; pictures by their ground.
LOW_CONTRAST = """(() => {
  const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = one => {
    for (; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const one of document.body.querySelectorAll('*')) {
    if (['SCRIPT', 'STYLE'].includes(one.tagName) || one.tagName === 'title') continue;
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !one.getClientRects().length) continue;
    const style = getComputedStyle(one), inside = one.closest('svg');
    const a = light(channels(inside ? style.fill : style.color)), b = light(ground(one));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push(one.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return out.slice(0, 5);
})()"""

PICTURES = """[...document.querySelectorAll('svg.plot')].map(plot => {
  const box = plot.getBoundingClientRect();
  return {name: plot.getAttribute('aria-label'), width: box.width, height: box.height,
          drawn: plot.querySelectorAll('path, use, polygon, rect:not(.mark)').length,
          marks: plot.querySelectorAll('.mark').length};
})"""

# Tables that do not fit a desktop's page, so that one has to scroll in them.
TOO_WIDE = """[...document.querySelectorAll('.scroll')]
  .filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.getAttribute('aria-label') + ' ' + one.scrollWidth)"""

COLUMN = """(() => {
  const table = document.querySelector('#measured table');
  return [...table.tBodies[0].rows].map(row => row.cells[%d].textContent);
})()"""


def look(browser, path, pictures):
    for width in WIDTHS:
        for dark in (False, True):
            name = f"{os.path.relpath(path)} at {width} px, {'dark' if dark else 'light'}"
            browser.open(path, width, dark)
            browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            check(browser.problems() == [], f"{name}: {browser.problems()}")
            for what, script in (("off screen", OFF_SCREEN), ("overlapping", OVERLAPS),
                                 ("cut", CUT), ("of low contrast", LOW_CONTRAST)):
                found = browser.evaluate(script)
                check(found == [], f"{name}: {what}: {found}")
            seen = browser.evaluate(PICTURES)
            check(len(seen) == pictures, f"{name}: {len(seen)} pictures, not {pictures}")
            for one in seen:
                check(one["width"] >= 300 and one["height"] >= 150 and one["drawn"] >= 10,
                      f"{name}: an empty picture: {one}")


def fits_a_desktop(browser, path):
    browser.open(path, 1400)
    found = browser.evaluate(TOO_WIDE)
    check(found == [], f"{os.path.relpath(path)}: too wide for 1400 px: {found}")


def sort_works(browser, path):
    browser.open(path, 1400)
    before = browser.evaluate(COLUMN % 1)
    head = "document.querySelectorAll('#measured th')[1]"
    browser.evaluate(head + ".querySelector('button').click()")
    rising = browser.evaluate(COLUMN % 1)
    check(rising[:-1] == sorted(before[:-1], key=float), f"sorted by T: {rising}")
    check(rising[-1] == before[-1], "the mean does not stay below")
    check(browser.evaluate(head + ".getAttribute('aria-sort')") == "ascending", "aria-sort")
    browser.evaluate(head + ".querySelector('button').click()")
    check(browser.evaluate(COLUMN % 1)[:-1] == rising[-2::-1], "sorted the other way")
    check(browser.evaluate(head + ".getAttribute('aria-sort')") == "descending", "aria-sort down")


def keyboard_works(browser, path):
    browser.open(path, 1400)
    browser.key("Tab", "Tab")
    check(browser.evaluate("document.activeElement.className") == "skip", "the first stop skips")
    reached = False
    for _ in range(80):
        browser.key("Tab", "Tab")
        if browser.evaluate("document.activeElement.closest('th') !== null"):
            reached = True
            break
    check(reached, "the Tab key reaches the head of a table")
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    check(outline == "solid", f"focus can be seen: {outline}")
    browser.key("Enter", "Enter", "\r")
    check(browser.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") ==
          "ascending", "the Enter key sorts")
    for _ in range(40):
        browser.key("Tab", "Tab")
        if browser.evaluate("document.activeElement.tagName") == "TR":
            break
    key = browser.evaluate("document.activeElement.dataset.key")
    lit = browser.evaluate(f"document.querySelectorAll('.mark.hot[data-key=\"{key}\"]').length")
    check(lit >= 2, f"a row that has the focus lights its points: {key}, {lit}")
    unreachable = browser.evaluate("[...document.querySelectorAll('.scroll')]"
                                   ".filter(one => one.tabIndex !== 0).length")
    check(unreachable == 0, "every frame that scrolls is a stop of the Tab key")


def highlight_works(browser, path):
    browser.open(path, 1400)
    lit = browser.evaluate("""(() => {
      const mark = document.querySelector('.mark[data-key="0-3"]');
      mark.dispatchEvent(new MouseEvent('mouseenter'));
      const rows = document.querySelectorAll('tr.hot[data-key="0-3"]').length;
      mark.dispatchEvent(new MouseEvent('mouseleave'));
      return [rows, document.querySelectorAll('.hot').length];
    })()""")
    check(lit[0] >= 4 and lit[1] == 0, f"a point lights its rows and no longer: {lit}")


def readable_without_scripts(browser, path):
    browser.open(path, 1400, scripts=False)
    dom = browser.command("DOM.getDocument", depth=0)["root"]["nodeId"]
    for selector in ("#measured tbody tr", "svg.plot", "#reproduce pre"):
        found = browser.command("DOM.querySelectorAll", nodeId=dom, selector=selector)["nodeIds"]
        check(len(found) > 0, f"without scripts: no {selector}")
    buttons = browser.command("DOM.querySelectorAll", nodeId=dom, selector="th button")["nodeIds"]
    check(buttons == [], "without scripts: buttons that do nothing")


def prints(browser, path):
    browser.open(path, 1400, dark=True)
    browser.command("Emulation.setEmulatedMedia", media="print", features=[
        {"name": "prefers-color-scheme", "value": "dark"}])
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    check(ground == "rgb(255, 255, 255)", f"paper is white: {ground}")
    pdf = browser.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    check(len(pdf) > 10000, "a PDF of the page")
    browser.command("Emulation.setEmulatedMedia", media="")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_record("a.jsonl", "synthetic-a", 1)
        write_record("b.jsonl", "synthetic-b-" + "long-" * 9, 1.3)
        one = make("report", "a.jsonl", "--format", "html", "-o", "one")
        check(one == "one/index.html", f"the command says the path: {one}")
        two = make("report", "a.jsonl", "b.jsonl", "--format", "html", "-o", "two")
        board = make("leaderboard", "--format", "html", "-o", "board")
        browser = Chromium()
        try:
            look(browser, one, 7)
            look(browser, two, 17)
            look(browser, board, 0)
            fits_a_desktop(browser, one)
            fits_a_desktop(browser, board)
            sort_works(browser, one)
            keyboard_works(browser, one)
            highlight_works(browser, one)
            readable_without_scripts(browser, one)
            prints(browser, one)
        finally:
            browser.close()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
