"""The report's style sheet and its colours, which people with a colour vision deficiency can tell apart."""

from eval_worker.report_markup import raw

# Okabe and Ito's palette, without yellow and black, which are hard to see on light or dark ground.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C")

STYLE = raw("""
:root { color-scheme: light dark; --ink: #1c1c1e; --soft: #63636a; --line: #d9d9de; --ground: #ffffff; --panel: #f6f6f8;
  --warn: #fff4d6; --warn-line: #c98a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececef; --soft: #a3a3ad; --line: #3a3a40; --ground: #18181b;
  --panel: #222226; --warn: #3a2f12; --warn-line: #d9a520; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; color: var(--ink); background: var(--ground);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p, ul { margin: .5rem 0; }
.soft, figcaption, caption { color: var(--soft); font-size: .875rem; }
.warnings { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .5rem 1rem; border-radius: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; overflow-wrap: anywhere; }
.numbers td, .numbers thead th + th { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers tbody th { white-space: nowrap; }
.best { font-weight: 700; }
.failed { color: var(--warn-line); }
.chip { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em; }
figure { margin: .75rem 0; background: var(--panel); border-radius: 6px; padding: .75rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .tick { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); }
svg .zero { stroke: var(--soft); stroke-dasharray: 4 3; }
svg .mean { stroke: var(--ground); stroke-width: 1.5; }
.clips { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .75rem; }
.clips figure { margin: 0; }
.clips img, .clips video { width: 100%; border-radius: 4px; }
pre { background: var(--panel); border-radius: 6px; padding: .6rem .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .85rem/1.45 ui-monospace, monospace; margin: .25rem 0 .75rem;
  max-height: 16rem; overflow: auto; }
details { margin: .5rem 0; }
summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } h2 { break-after: avoid; }
  figure, tr, .warnings { break-inside: avoid; } pre { max-height: none; } * { print-color-adjust: exact; } }
""")
