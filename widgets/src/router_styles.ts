/** Styles of the table of models, for its shadow root. A term is a hue, how sure it is a pattern. */

import { THEME } from "./styles";

const HUES = `
.view {
  --quality: #0b5cad; --latency: #17845f; --cost: #7a57c4; --local_bonus: #b8690a;
  --track: color-mix(in srgb, var(--fg) 9%, var(--bg));
  --first: 240px; --column: 148px; --fact-lines: 2;
}
.view.dark { --quality: #62acff; --latency: #40c291; --cost: #b8a0f5; --local_bonus: #f2ab45; }
.quality { --hue: var(--quality); } .latency { --hue: var(--latency); } .cost { --hue: var(--cost); }
.bonus, .local_bonus { --hue: var(--local_bonus); }
.plain { --hue: var(--fg); }
`;

const FRAME = `
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.card {
  position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: clip; text-align: left;
  background: var(--bg); color: var(--fg); font: 13px/1.45 var(--sans);
}
h3 { margin: 0; font-size: 13px; font-weight: 600; }
p { margin: 0; }
bdi { unicode-bidi: isolate; overflow-wrap: anywhere; }
.quiet { color: var(--dim); }
.router-head { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: flex-start; justify-content: space-between; padding: 9px 12px; border-bottom: 1px solid var(--line); }
.what { display: flex; flex: 1 1 300px; flex-wrap: wrap; gap: 6px 10px; align-items: baseline; min-width: 0; }
.chips { display: flex; flex-wrap: wrap; gap: 4px 6px; min-width: 0; }
.chip { font: 12px/1.4 var(--mono); color: var(--dim); border: 1px solid var(--line); border-radius: 10px; padding: 1px 8px; }
.buttons { display: flex; gap: 6px; }
.button {
  font: 12.5px/1.4 var(--sans); color: var(--fg); background: var(--soft); border: 1px solid var(--line); border-radius: 5px;
  padding: 3px 10px; cursor: pointer; white-space: nowrap;
}
.button:hover:enabled { border-color: var(--dim); }
.button:active:enabled { background: var(--chosen-bg); }
.button:disabled, .link:disabled { color: color-mix(in srgb, var(--fg) 45%, var(--bg)); cursor: default; }
.link { font: 12px var(--sans); color: var(--accent); background: none; border: 0; padding: 1px 3px; border-radius: 3px; cursor: pointer; }
.link:hover:enabled { text-decoration: underline; }
:is(.button, .link, select, input):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.notices { margin: 0; padding: 6px 12px 6px 28px; background: var(--noted-bg); border-bottom: 1px solid var(--line); font-size: 12.5px; }
.busy { display: flex; gap: 10px; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--line); font-size: 12.5px; font-variant-numeric: tabular-nums; }
.progress { flex: none; width: 120px; height: 6px; border-radius: 3px; background: var(--track); overflow: hidden; forced-color-adjust: none; }
.progress i { display: block; height: 100%; background: var(--accent); transition: width .15s; }
.progress.endless i { width: 35%; animation: pass 1.4s ease-in-out infinite alternate; }
@keyframes pass { to { transform: translateX(186%); } }
.key-line { display: flex; flex-wrap: wrap; gap: 3px 20px; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--line); font-size: 12px; }
.keys { display: flex; flex-wrap: wrap; gap: 3px 12px; }
.key { display: inline-flex; gap: 5px; align-items: center; white-space: nowrap; }
.formula { flex: 1 1 100%; color: var(--dim); font-size: 11.5px; }
.swatch { display: inline-block; flex: none; width: 12px; height: 10px; border-radius: 2px; background: var(--hue); forced-color-adjust: none; }
[data-basis="declared"] { background: repeating-linear-gradient(135deg, var(--hue) 0 3px, color-mix(in srgb, var(--hue) 38%, var(--bg)) 3px 5px); }
[data-basis="assumed"] { background: color-mix(in srgb, var(--hue) 20%, var(--bg)); box-shadow: inset 0 0 0 1.5px var(--hue); }
.worth-key { display: inline-block; width: 2px; height: 13px; background: var(--fg); forced-color-adjust: none; }
.nothing { padding: 28px 16px; text-align: center; }
.card[data-none] :is(.key-line, .detail) { display: none; }
.card[data-none] .columns { grid-template-columns: minmax(0, 1fr); }
@container (min-width: 860px) { .card[data-none] fieldset { grid-template-columns: repeat(2, minmax(0, 420px)); } }
.card[data-blank] > :not(.nothing, .spoken) { display: none; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

const GRID = `
.scroller { overflow: auto; max-height: max(560px, 85vh); border-bottom: 1px solid var(--line); scrollbar-width: thin; scroll-padding: 88px 0 0 var(--first); }
.grid {
  border-collapse: separate; border-spacing: 0; table-layout: fixed; width: 100%;
  min-width: calc(var(--first) + var(--workloads) * var(--column)); font-size: 12px;
}
col.of-models { width: var(--first); }
.grid :is(th, td) { padding: 7px 10px; vertical-align: top; text-align: start; background: var(--bg); overflow: hidden; }
.grid :is(tbody th, tbody td) { border-top: 1px solid var(--line); }
.grid thead th { position: sticky; top: 0; z-index: 2; border-bottom: 1px solid var(--line); font-weight: 500; color: var(--dim); }
.grid tbody:nth-of-type(1) tr:first-child > * { border-top: 0; }
.grid th.model { position: sticky; left: 0; z-index: 1; border-right: 1px solid var(--line); font-weight: 400; }
.grid th.corner { z-index: 3; }
.workload .title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; color: var(--fg); font-weight: 600; }
.workload .weights { display: block; font: 11px/1.4 var(--mono); white-space: nowrap; }
.workload .marks { display: block; font-size: 11px; line-height: 1.4; }
.workload.changed :is(.weights, .marks) { color: var(--accent); }
.model .title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; font-weight: 600; }
.facts { display: block; max-height: calc(var(--fact-lines) * 1.4em); overflow: hidden; color: var(--dim); font-size: 11px; line-height: 1.4; overflow-wrap: anywhere; }
.facts .part { display: inline-block; max-width: 100%; vertical-align: top; }
.model.out .title { color: var(--dim); }
td.cell { cursor: pointer; position: relative; }
.card[data-still] td.cell { cursor: default; }
td.cell:hover { background: var(--soft); }
td.cell:focus { outline: none; }
td.cell[aria-selected="true"] { background: var(--chosen-bg); box-shadow: inset 0 0 0 1px var(--accent); }
td.cell:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.cell-head { display: flex; gap: 7px; align-items: baseline; font: 12px/1.5 var(--mono); white-space: nowrap; color: var(--dim); font-variant-numeric: tabular-nums; }
.cell-head b { color: var(--fg); font-weight: 400; }
.cell-head .wins { margin-left: auto; font-size: 11px; overflow: hidden; text-overflow: ellipsis; }
.first .cell-head b { font-weight: 700; }
.first .rank { color: var(--on-accent); background: var(--accent); border-radius: 8px; padding: 0 6px; font-weight: 700; font-size: 11px; }
.stack { position: relative; contain: layout size; display: flex; gap: 1px; height: 11px; margin-top: 4px; border-radius: 2px; background: var(--track); forced-color-adjust: none; }
.stack i { display: block; flex: none; margin-right: -1px; border-right: 1px solid var(--bg); background: var(--hue); }
.stack i[data-basis="declared"] { background: repeating-linear-gradient(135deg, var(--hue) 0 3px, color-mix(in srgb, var(--hue) 38%, var(--bg)) 3px 5px); }
.stack i[data-basis="assumed"] { background: color-mix(in srgb, var(--hue) 20%, var(--bg)); }
.stack .worth { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--fg); box-shadow: 0 0 0 1px var(--bg); }
.filtered { color: var(--dim); }
td.filtered { background: repeating-linear-gradient(135deg, transparent 0 7px, var(--soft) 7px 14px), var(--bg); }
.left-out { font-size: 11px; line-height: 15px; display: inline-block; border: 1px dashed var(--dim); border-radius: 3px; padding: 0 4px; }
.why { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; font-size: 11.5px; line-height: 1.35; margin-top: 2px; }
.baselines :is(th, td) { background: var(--soft); --fact-lines: 5; }
.baselines td.cell { cursor: default; color: var(--fg); font-size: 12px; }
.baselines .title { font-weight: 500; }
.baselines tr:first-child > * { border-top: 2px solid var(--line); }
`;

const BELOW = `
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 392px; }
.detail { padding: 10px 12px 12px; min-width: 0; border-right: 1px solid var(--line); }
.detail-head { display: flex; gap: 12px; align-items: baseline; justify-content: space-between; margin-bottom: 6px; }
.detail-head h3 { overflow-wrap: anywhere; min-width: 0; }
.detail-head .link { flex: none; }
.detail-body { display: grid; gap: 12px; min-height: 190px; align-content: start; }
.detail.late .detail-body, .changes.late ul { opacity: .55; }
.lines, .sums { margin: 0; font-size: 12px; }
.line { display: grid; grid-template-columns: 92px 46px 66px minmax(0, 1fr); gap: 0 10px; padding: 3px 0; border-top: 1px solid var(--line); align-items: baseline; }
.line dt { display: flex; gap: 6px; align-items: center; }
.line dd, .sums dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.line .number { font: 12px/1.5 var(--mono); text-align: right; }
.line .basis { color: var(--dim); }
.how { color: var(--dim); font: 11.5px/1.5 var(--mono); }
.sums { display: grid; grid-template-columns: 56px minmax(0, 1fr); gap: 2px 8px; border-top: 1px solid var(--line); padding-top: 5px; }
.sums:first-child { border-top: 0; }
.sums dt { color: var(--dim); }
.sums .sum { font: 11.5px/1.55 var(--mono); }
.changes ul { margin: 3px 0 0; padding: 0 0 0 18px; font-size: 12.5px; }
.changes li { padding: 1px 0; }
.side { padding: 10px 12px 12px; background: var(--soft); min-width: 0; }
fieldset { display: grid; gap: 12px 22px; margin: 0; padding: 0; border: 0; min-width: 0; }
.knobs > .quiet { margin-bottom: 8px; }
.knob-group { min-width: 0; }
.knobs-head { display: flex; gap: 8px; align-items: center; margin-bottom: 3px; min-height: 24px; font-size: 13px; }
.knobs-head b { font-weight: 600; white-space: nowrap; }
.knob { display: grid; grid-template-columns: 124px minmax(0, 1fr) 86px; gap: 8px; align-items: center; min-height: 26px; font-size: 12px; }
.knob-name { display: flex; flex-wrap: wrap; gap: 0 5px; align-items: center; line-height: 1.25; }
.unit { color: var(--dim); font-size: 11px; }
.knob input[type="range"] { width: 100%; min-width: 0; margin: 0; accent-color: var(--accent); }
:is(.knob input[type="number"], .knobs select) {
  font: 12px/1.4 var(--mono); color: var(--fg); background: var(--bg); border: 1px solid var(--line); border-radius: 4px;
  padding: 2px 4px; width: 100%; min-width: 0;
}
.knob input[type="number"] { text-align: right; }
.knobs .menu { font-family: var(--sans); text-overflow: ellipsis; }
.knob select { grid-column: 2 / 4; }
:is(.knob input[type="number"], .knobs select):disabled { color: var(--dim); background: var(--soft); }
.answers { padding: 10px 12px 12px; border-top: 1px solid var(--line); }
.answer-list { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 290px), 1fr)); gap: 8px; margin-top: 6px; }
.answer { display: flex; flex-direction: column; gap: 4px; min-width: 0; border: 1px solid var(--line); border-left: 3px solid var(--accent); border-radius: 0 5px 5px 0; padding: 6px 10px 8px; }
.answer[data-outcome="failure"] { border-left: 3px dashed var(--removed); }
.answer:is([data-outcome="running"], [data-outcome="inconclusive"]) { border-left: 3px dotted var(--dim); }
.answer-head { display: flex; flex-wrap: wrap; gap: 0 10px; justify-content: space-between; align-items: baseline; }
.answer .title { font-weight: 600; min-width: 0; }
.figures-line { color: var(--dim); font-size: 11.5px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.answer-text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; font-size: 13.5px; line-height: 1.5; max-height: 420px; overflow: hidden auto; }
.answer-text.cut { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 5; overflow: hidden; }
.story { color: var(--dim); font-size: 12px; }
.answer-foot { display: flex; gap: 8px; align-items: center; margin-top: auto; min-height: 26px; }
.thumbs { display: flex; gap: 6px; margin-left: auto; }
.thumbs .button { display: inline-flex; gap: 5px; align-items: center; padding: 2px 8px; }
.thumb { width: 13px; height: 13px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.thumb.bad { transform: rotate(180deg); }
.thumbs .button[aria-pressed="true"] { color: var(--fg); border-color: var(--accent); background: var(--chosen-bg); font-weight: 600; }
.thumbs .button[aria-pressed="true"] .thumb { fill: currentColor; }
`;

const NARROW = `
@container (max-width: 859px) {
  .view, .router { --first: 176px; --column: 164px; }
  .columns { grid-template-columns: minmax(0, 1fr); }
  .detail { border-right: 0; border-bottom: 1px solid var(--line); }
  .detail-body { min-height: 0; }
}
@container (min-width: 600px) and (max-width: 859px) { fieldset { grid-template-columns: repeat(2, minmax(0, 1fr)); } .knob { grid-template-columns: 88px minmax(0, 1fr) 86px; } }
@container (max-width: 599px) {
  .router { --first: 124px; --column: 160px; --fact-lines: 3; }
  .grid :is(th, td) { padding: 6px 8px; }
  .line { grid-template-columns: minmax(0, 1fr) 46px 66px; }
  .line .how { grid-column: 1 / -1; }
}
@container (max-width: 419px) { .buttons { flex: 1 1 100%; } .knob { grid-template-columns: 88px minmax(0, 1fr) 86px; } }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) {
  .view, .view.dark { --bg: Canvas; --fg: CanvasText; --dim: CanvasText; --line: CanvasText; --accent: Highlight; --on-accent: HighlightText; --removed: CanvasText; }
  td.cell[aria-selected="true"] { outline: 2px solid Highlight; outline-offset: -2px; }
  .stack { box-shadow: 0 0 0 1px CanvasText; }
}
`;

export const ROUTER_STYLES = THEME + HUES + FRAME + GRID + BELOW + NARROW;
