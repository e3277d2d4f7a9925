/** All styles of a view, for its shadow root. Colours come from the front end's theme; the hues are ours. */

import { FLARE_STYLES } from "./flare_styles";

/** Colours and fonts of every view. */
export const THEME = `
:host { all: initial; display: block; width: 100%; }
.view {
  --bg: var(--jp-layout-color1, var(--vscode-editor-background, #fff));
  --fg: var(--jp-ui-font-color1, var(--vscode-editor-foreground, #1b1f24));
  --line: var(--jp-border-color2, #d9dee3);
  --accent: #0b5cad;
  --on-accent: #fff;
  --doubt: 217 119 6;
  --doubt-full: .62;
  --low: #b45309;
  --raw: #7c8996;
  --processed: #0b5cad;
  --removed: #b42318;
  --branch: #7c3aad;
  --retrieved: #0f7a4f;
  --retrieved-bg: rgb(22 140 90 / .17);
  --failed-bg: #fdecea;
  --noted-bg: #fff6e0;
  --dim: color-mix(in srgb, var(--fg) 72%, var(--bg));
  --soft: color-mix(in srgb, var(--fg) 4%, var(--bg));
  --chosen-bg: color-mix(in srgb, var(--processed) 12%, var(--bg));
  --mono: var(--jp-code-font-family, ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace);
  --sans: var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif);
  container-type: inline-size; min-width: 280px;
  color-scheme: light;
}
.view.dark {
  --bg: var(--jp-layout-color1, var(--vscode-editor-background, #14171a));
  --fg: var(--jp-ui-font-color1, var(--vscode-editor-foreground, #e7eaee));
  --line: var(--jp-border-color2, #2d343b);
  --accent: #6cb2ff;
  --on-accent: #10151a;
  --doubt: 245 158 11;
  --doubt-full: .46;
  --low: #f5a83a;
  --raw: #8592a0;
  --processed: #6cb2ff;
  --removed: #ff9a90;
  --branch: #cf9bff;
  --retrieved: #4fd39a;
  --retrieved-bg: rgb(60 190 130 / .24);
  --failed-bg: #3b1f1d;
  --noted-bg: #33280f;
  color-scheme: dark;
}
`;

const CARD = `
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.card {
  position: relative; margin: 0; border: 1px solid var(--line); border-radius: 8px;
  background: var(--bg); color: var(--fg); font: 13px/1.45 var(--sans); overflow: clip; text-align: left;
}
.header { display: grid; gap: 4px 12px; padding: 9px 12px; border-bottom: 1px solid var(--line); }
.what, .how { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: center; min-width: 0; }
.what b { font-weight: 600; overflow-wrap: anywhere; }
.how { color: var(--dim); font-size: 12px; gap: 0; }
.how span:not(:last-child)::after { content: "·"; margin: 0 .5em; }
.asked {
  font-size: 13px; white-space: pre-wrap; overflow: hidden; overflow-wrap: anywhere; unicode-bidi: plaintext;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  border-left: 3px solid var(--line); padding-left: 8px; 
}
.origin { font-size: 12px; color: var(--dim); border-left: 2px solid var(--branch); padding-left: 6px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.settings { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 18px; min-width: 0; }
.chip { font: 12px/1.4 var(--mono); color: var(--dim); border: 1px solid var(--line); border-radius: 10px; padding: 1px 8px; white-space: nowrap; }
.notices { margin: 0; padding: 6px 12px 6px 28px; background: var(--noted-bg); border-bottom: 1px solid var(--line); font-size: 12.5px; }
.failure { display: grid; gap: 2px; padding: 10px 12px; background: var(--failed-bg); border-bottom: 1px solid var(--line); border-left: 4px solid var(--removed); overflow-wrap: anywhere; }
.failure b { font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 392px; }
.main { display: flex; flex-direction: column; min-width: 0; padding: 10px 12px 6px; border-right: 1px solid var(--line); }
.footer { display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 7px 12px; border-top: 1px solid var(--line); color: var(--dim); font-size: 12px; }
.footer b { color: var(--fg); font: 12px var(--mono); }
.footer .remark { margin-left: auto; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.card[data-none] :is(.legend, .tokens, .plot, .side, .footer) { display: none; }
.card[data-none] .columns { grid-template-columns: minmax(0, 1fr); }
.card[data-none] .main { border: 0; padding: 28px 16px; }
.card[data-none] .meta { justify-content: center; }
.card[data-none] .status { justify-content: center; font-size: 13.5px; text-align: center; }
.card[data-phase="prefilling"] .footer > :nth-child(-n + 3) { display: none; }
.card[data-bare] .side { min-height: 0; }
.card[data-bare] :is(.plot, .legend, .footer > :nth-child(-n + 3)) { display: none; }
@container (max-width: 859px) {
  .columns { grid-template-columns: minmax(0, 1fr); }
  .main { border-right: 0; border-bottom: 1px solid var(--line); }
  .footer .remark { margin-left: 0; }
}
`;

const META = `
.meta { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; justify-content: space-between; color: var(--dim); font-size: 12px; min-height: 26px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.legend label { display: inline-flex; gap: 6px; align-items: center; }
.legend select {
  font: 600 12px var(--sans); color: var(--fg); background: var(--bg); border: 1px solid var(--line);
  border-radius: 4px; padding: 2px 4px; width: 190px; max-width: 100%; text-overflow: ellipsis;
}
.scale { display: inline-flex; gap: 6px; align-items: center; white-space: nowrap; }
.ramp {
  width: 72px; height: 10px; border-radius: 2px; border: 1px solid var(--line); forced-color-adjust: none;
  background: linear-gradient(90deg, rgb(var(--doubt) / 0), rgb(var(--doubt) / var(--doubt-full)));
}
.mark { white-space: nowrap; padding-bottom: 1px; }
.mark.low { border-bottom: 2px dotted var(--low); }
.mark.alternative { border-bottom: 1.5px solid var(--fg); }
.status { display: flex; flex: 1 0 100%; gap: 8px; align-items: center; justify-content: flex-end; min-height: 20px; text-align: right; font-variant-numeric: tabular-nums; }
.status[data-phase="failed"] { color: var(--removed); }
.progress { flex: none; width: 96px; height: 6px; border-radius: 3px; background: var(--line); overflow: hidden; forced-color-adjust: none; }
.progress i { display: block; height: 100%; background: var(--processed); }
`;

const TOKENS = `
.tokens {
  position: relative; margin: 4px -4px 0; padding: 2px 4px; min-height: 60px; max-height: 420px; overflow: hidden auto;
  font-size: 15px; line-height: 1.87; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4;
  cursor: text; scrollbar-width: thin; overscroll-behavior: auto;
}
.paragraph { unicode-bidi: plaintext; }
.token {
  cursor: pointer; padding: 2px 0 1px; border-radius: 2px; border-bottom: 2px solid transparent;
  background-color: rgb(var(--doubt) / calc(var(--d, 0) * var(--doubt-full)));
}
.token.low { border-bottom: 2px dotted var(--low); }
.token.alternative { text-decoration: underline solid 1.3px; text-underline-offset: 2.5px; text-decoration-skip-ink: none; }
.token.forced { box-shadow: inset 0 0 0 1px var(--dim); }
.token.branched { position: relative; }
.token.branched::after { content: ""; position: absolute; left: -4px; top: -3px; bottom: -3px; border-left: 2px solid var(--branch); }
.token.isolated { unicode-bidi: isolate; }
.token:is(:hover, .hovered) { outline: 1px solid var(--dim); outline-offset: 1px; }
.token.marked { outline: 1.5px dashed var(--accent); outline-offset: 1px; }
.token.selected { outline: 2px solid var(--accent); outline-offset: 1px; }
.token:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; box-shadow: 0 0 0 5px color-mix(in srgb, var(--accent) 30%, transparent); }
.token.boxed::before { content: attr(data-sign); }
.token.boxed, .sign {
  font: 11px/1.4 var(--mono); color: var(--dim); unicode-bidi: isolate; text-decoration: none; font-style: normal;
}
.token.boxed { display: inline-block; vertical-align: 1px; line-height: 1.3; border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; margin: 0 1px; text-decoration: none; }
.token.boxed.low { border-bottom: 2px dotted var(--low); }
.token.boxed.cut { text-decoration: line-through; }
.sign::before { content: attr(data-sign); }
.sign { color: var(--fg); user-select: none; }
.sign.break { font-size: 13px; }
.unseen { font-size: 0; }
`;

const PLOT = `
.plot { display: flex; flex-direction: column; flex: 1 1 auto; margin-top: 8px; min-height: 184px; }
.plot-title { color: var(--dim); font-size: 12px; }
.plot-title b { font-weight: 600; color: var(--fg); }
.canvas { position: relative; flex: 1 1 160px; min-height: 160px; max-height: 260px; }
.canvas svg { position: absolute; inset: 0; display: block; overflow: visible; touch-action: pan-y; cursor: crosshair; user-select: none; }
svg text { fill: var(--dim); font: 10.5px var(--mono); }
svg .tick { text-anchor: middle; }
svg .unit { font-family: var(--sans); }
.grid line { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.shade { fill: rgb(var(--doubt) / .17); }
.curve { fill: none; stroke: var(--processed); stroke-width: 1.5; stroke-linejoin: round; }
.curve.dense { stroke-width: 1; }
.dots { fill: none; stroke: var(--processed); stroke-width: 4; stroke-linecap: round; }
.dots.low { stroke: var(--low); stroke-width: 5.5; }
.branch-line { stroke: var(--branch); stroke-width: 2; pointer-events: none; }
.hover-line { stroke: var(--dim); stroke-width: 1; pointer-events: none; }
.hover-dot { fill: var(--bg); stroke: var(--fg); stroke-width: 1.5; pointer-events: none; }
.selection { pointer-events: none; }
.selection line { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 2 3; }
.selection.firm line { stroke-dasharray: none; }
.selection circle { fill: var(--processed); stroke: var(--bg); stroke-width: 1.5; }
.selection circle.low { fill: var(--low); }
.selection text { fill: var(--accent); font-weight: 700; }
.threshold { cursor: ns-resize; outline: none; touch-action: none; }
.threshold .line { stroke: var(--removed); stroke-width: 1.5; stroke-dasharray: 5 3; }
.threshold .hit { fill: transparent; }
.threshold .grip { fill: var(--bg); stroke: var(--line); }
.threshold text { fill: var(--removed); font-family: var(--sans); }
.threshold .number { font: 700 11px var(--mono); }
.threshold:hover .grip { stroke: var(--removed); }
.threshold:focus-visible .grip { stroke: var(--accent); stroke-width: 2.5; }
`;

const SIDE = `
/* The height of a full panel, so that the page rests when one comes or goes. */
.side { min-height: 438px; padding: 10px 12px; background: var(--soft); min-width: 0; }
.quiet { color: var(--dim); margin: 4px 0; max-width: 44em; }
.side-title { display: flex; flex-wrap: nowrap; gap: 8px; align-items: center; min-width: 0; height: 22px; white-space: nowrap; }
.label {
  font: 12px/1.35 var(--mono); background: var(--bg); color: var(--fg); border: 1px solid var(--line); border-radius: 3px;
  padding: 0 4px; white-space: pre; overflow: hidden; text-overflow: ellipsis; unicode-bidi: isolate;
}
.side-title .label { font-weight: 600; min-width: 24px; }
.state { font-size: 11px; color: var(--dim); border: 1px dashed var(--dim); border-radius: 3px; padding: 0 4px; }
.follows, .link { margin-left: auto; font-size: 12px; color: var(--dim); }
.link { font: 12px var(--sans); color: var(--accent); background: none; border: 0; padding: 1px 3px; border-radius: 3px; cursor: pointer; }
.link:hover { text-decoration: underline; }
.side:focus { outline: none; }
.side:focus-visible { box-shadow: inset 0 0 0 2px var(--accent); }
.take { margin: 0; text-align: start; cursor: pointer; border-color: color-mix(in srgb, var(--accent) 45%, var(--line)); }
.take:hover { background: var(--chosen-bg); border-color: var(--accent); }
.take:active { background: var(--accent); color: var(--on-accent); }
:is(.link, .take, select):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.figures { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.12fr) minmax(0, .88fr); gap: 1px 16px; margin: 7px 0 8px; max-width: 480px; font-size: 12px; color: var(--dim); }
.figures div { display: flex; justify-content: space-between; gap: 6px; white-space: nowrap; }
.figures dd { margin: 0; color: var(--fg); font: 12px/1.5 var(--mono); }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 12px; }
.table { min-height: 252px; }
col.rank { width: 22px; } col.name { width: 30%; } col.raw { width: 44px; } col.processed { width: 66px; } col.fate { width: 57px; }
tr { height: 21px; }
th, td { padding: 0 4px; vertical-align: middle; text-align: left; white-space: nowrap; overflow: hidden; line-height: 18px; background: none; border: 0; }
th { font-weight: 500; color: var(--dim); font-size: 11.5px; }
th.number, td.number, td.rank { text-align: right; }
td.number { font: 11.5px var(--mono); font-variant-numeric: tabular-nums; }
td.rank { font: 10.5px var(--mono); color: var(--dim); padding: 0 2px 0 0; }
td.name .label { display: inline-block; max-width: 100%; vertical-align: middle; }
td.bars i { display: block; height: 6px; border-radius: 1px; forced-color-adjust: none; }
td.bars i.raw { background: var(--raw); margin-bottom: 2px; }
td.bars i.processed { background: var(--processed); }
th.key::before { content: ""; display: inline-block; width: 8px; height: 6px; margin-right: 4px; border-radius: 1px; vertical-align: 1px; background: var(--raw); forced-color-adjust: none; }
th.key.processed::before { background: var(--processed); }
tr.chosen td { background: var(--chosen-bg); }
tr.chosen td.fate { font-weight: 600; }
tr:is(.removed, .others) td { color: var(--dim); }
tr.removed .label { color: var(--dim); text-decoration: line-through; text-decoration-color: var(--removed); }
.stage { font-size: 11px; line-height: 15px; display: inline-block; color: var(--removed); border: 1px solid currentColor; border-radius: 3px; padding: 0 4px; }
.more { display: flex; justify-content: space-between; align-items: center; gap: 8px; height: 22px; padding-top: 2px; white-space: nowrap; }
.more .link { margin-left: 0; }
.more .link:last-child:not(:first-child) { margin-left: auto; }
.hint { font-size: 11.5px; color: var(--dim); overflow: hidden; text-overflow: ellipsis; }
.draw-bar { position: relative; height: 18px; margin-top: 8px; border-radius: 3px; box-shadow: 0 0 0 1px var(--line); background: var(--bg); forced-color-adjust: none; }
.segment {
  position: absolute; top: 0; bottom: 0; font: 10.5px/18px var(--mono); padding: 0 4px; overflow: hidden; white-space: pre; text-overflow: ellipsis;
  background: color-mix(in srgb, var(--raw) 38%, var(--bg)); color: var(--fg); border-right: 1px solid var(--bg);
}
.segment.chosen { background: var(--processed); color: var(--on-accent); }
.segment.others { background: repeating-linear-gradient(135deg, var(--line) 0 3px, var(--bg) 3px 6px); }
.draw-mark { position: absolute; top: -4px; bottom: -4px; width: 2px; margin-left: -1px; background: var(--fg); box-shadow: 0 0 0 1px var(--bg); }
.draw-ends { display: flex; justify-content: space-between; gap: 8px; margin-top: 6px; color: var(--dim); font-size: 11.5px; font-variant-numeric: tabular-nums; text-align: center; }
`;

const REST = `
@container (max-width: 369px) {
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .side { min-height: 470px; padding: 10px 8px; }
  col.name { width: 25%; }
  .hint { display: none; }
}
.tooltip {
  position: absolute; top: 0; left: 0; z-index: 2; display: flex; gap: 6px; align-items: center; pointer-events: none; white-space: nowrap;
  padding: 3px 7px; border-radius: 5px; border: 1px solid var(--line); background: var(--bg); color: var(--fg); font-size: 12px;
  box-shadow: 0 2px 8px rgb(0 0 0 / .18); max-width: calc(100% - 8px);
}
.tooltip .label { max-width: 16em; }
.numbers { font: 11.5px var(--mono); }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) {
  .view, .view.dark { --processed: Highlight; --raw: GrayText; --accent: Highlight; --low: CanvasText; --removed: CanvasText; --branch: CanvasText; --retrieved: CanvasText; --line: CanvasText; --bg: Canvas; --fg: CanvasText; --dim: CanvasText; --on-accent: HighlightText; }
  .segment { border: 1px solid CanvasText; }
  .token { border-bottom-color: Canvas; }
  .token.low { border-bottom-color: CanvasText; }
  tr.chosen { outline: 2px solid Highlight; outline-offset: -2px; }
}
`;

export const STYLES = THEME + CARD + META + TOKENS + PLOT + SIDE + FLARE_STYLES + REST;
