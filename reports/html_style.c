/* Colours and style sheet of the HTML pages. Every pair of text and ground has at least 4.5:1 of
 * contrast (WCAG AA), in light and in dark; tests/test_html.c computes it. */
#include "html.h"

const struct html_colour html_colours[] = {
    {"--paper", "#ffffff", "#15171a"}, {"--card", "#f3f5f7", "#1f2227"},
    {"--ink", "#1a1c20", "#e8e9ec"},   {"--muted", "#565b63", "#a9afb8"},
    {"--axis", "#44484f", "#b9bec6"},  {"--grid", "#d0d3d8", "#3a3f47"},
    {"--faint", "#ebedf0", "#262a30"}, {"--line", "#c4c8ce", "#454b54"},
    {"--link", "#0b5cad", "#82b9ff"},  {"--hot", "#fff0c2", "#453a12"},
    {"--brown", "#8a5a00", "#e0a94a"}, {"--purple", "#6a3d9a", "#c3a3f0"},
    {"--red", "#b22222", "#ff8a80"},
};
const size_t html_colour_count = sizeof html_colours / sizeof *html_colours;

const char html_style[] =
    "*{box-sizing:border-box}\n"
    "html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}\n"
    "main,footer{max-width:84rem;margin:0 auto;padding:0 1rem}\n"
    "footer{margin-top:3rem;padding-bottom:2rem;color:var(--muted);font-size:.875rem}\n"
    "h1{font-size:1.7rem;line-height:1.2;margin:1.5rem 0 .25rem}\n"
    "h2{font-size:1.3rem;line-height:1.3;margin:2.75rem 0 .5rem;padding-top:.6rem;"
    "border-top:1px solid var(--line)}\n"
    "h3{font-size:1.05rem;margin:1.6rem 0 .4rem}\n"
    "h1,h2,h3,p,li,dd,dt,figcaption,code{overflow-wrap:anywhere}\n"
    "p,ul,ol{max-width:46rem;margin:.5rem 0}\n"
    "a{color:var(--link)}\n"
    "code,pre{font-family:ui-monospace,monospace;font-size:.9em}\n"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:.3rem;"
    "padding:.7rem .9rem;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ":focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
    ".skip{position:absolute;left:1rem;top:-4rem;background:var(--paper);padding:.5rem 1rem}\n"
    ".skip:focus{top:.5rem;z-index:2}\n"
    ".lead{color:var(--muted);margin:0 0 1rem;max-width:none}\n"
    ".note{color:var(--muted);font-size:.9rem}\n"
    /* contents */
    "nav ol{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1rem;padding:0;max-width:none;"
    "font-size:.95rem}\n"
    "nav a{display:inline-block;padding:.15rem 0}\n"
    /* headline */
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));"
    "gap:.75rem;margin:1rem 0}\n"
    ".figure{background:var(--card);border:1px solid var(--line);border-radius:.4rem;"
    "padding:.7rem .9rem}\n"
    ".figure dt{color:var(--muted);font-size:.9rem}\n"
    ".figure dd{margin:0}\n"
    ".figure strong{font-size:1.65rem;line-height:1.3;font-variant-numeric:tabular-nums}\n"
    ".figure span{display:block;color:var(--muted);font-size:.875rem;line-height:1.35}\n"
    ".facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1rem;"
    "margin:.75rem 0}\n"
    ".facts dt{color:var(--muted)}\n"
    ".facts dd{margin:0}\n"
    /* tables and pictures scroll inside their own frame, never the page */
    ".scroll{overflow-x:auto;margin:.75rem 0}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}\n"
    "caption{text-align:left;color:var(--muted);padding:.2rem 0;caption-side:top}\n"
    "th,td{padding:.28rem .55rem;text-align:right;border-bottom:1px solid var(--grid);"
    "white-space:nowrap}\n"
    "th{white-space:normal;border-bottom:2px solid "
    "var(--line);vertical-align:bottom;font-weight:600}\n"
    "tbody tr:hover{background:var(--card)}\n"
    ".sum td{font-weight:600;border-top:1px solid var(--line)}\n"
    ".l{text-align:left}\n"
    "td.long{white-space:normal;min-width:16rem;max-width:34rem}\n"
    "td.path{white-space:normal;max-width:34rem}\n"
    "tr.hot,tbody tr.hot:hover{background:var(--hot)}\n"
    "th button{all:unset;cursor:pointer;padding:.1rem .1rem .1rem 0}\n"
    "th button:hover{text-decoration:underline}\n"
    "th button:focus-visible{outline:3px solid var(--link);outline-offset:1px}\n"
    "th button::after{content:'\\2195';color:var(--muted);margin-left:.3em;font-weight:400}\n"
    "th[aria-sort=ascending] button::after{content:'\\2191';color:var(--ink)}\n"
    "th[aria-sort=descending] button::after{content:'\\2193';color:var(--ink)}\n"
    ".swatch{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.5em}\n"
    "figure{margin:1rem 0}\n"
    "figcaption{color:var(--muted);font-size:.9rem;max-width:46rem}\n"
    ".plot{display:block;width:100%;height:auto;min-width:44rem;background:var(--paper)}\n"
    ".plot.wide{min-width:54rem}\n"
    ".mark{fill:transparent;stroke:transparent;stroke-width:2.5;pointer-events:all}\n"
    ".mark:hover,.mark.hot{stroke:var(--ink);fill:none}\n"
    "details{margin:.75rem 0}\n"
    "summary{cursor:pointer;color:var(--link)}\n"
    "ol.findings{padding-left:1.4rem;max-width:52rem}\n"
    "ol.findings>li{margin:.9rem 0}\n"
    "ol.findings dl{display:grid;grid-template-columns:4rem minmax(0,1fr);gap:.1rem .6rem;"
    "margin:.25rem 0}\n"
    "ol.findings dt{color:var(--muted)}\n"
    "ol.findings dd{margin:0}\n"
    "@media (max-width:40rem){h1{font-size:1.4rem}.facts{grid-template-columns:minmax(0,1fr);"
    "gap:0}.facts dd{margin-bottom:.5rem}th,td{padding:.25rem .45rem}}\n"
    "@media print{body{font-size:10pt}main,footer{max-width:none;padding:0}nav,.skip{display:none}"
    ".scroll{overflow:visible}.plot,.plot.wide{min-width:0}table{font-size:7.5pt}"
    "th,td{padding:.12rem .3rem}td.long{min-width:0}figure,tr,.figure{break-inside:avoid}"
    "h2,h3{break-after:avoid}th button::after{content:none!important}"
    "details::details-content{content-visibility:visible}}\n"
    "@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}\n";
