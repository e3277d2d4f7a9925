/** Styles of what a view of look-ups has on top of a run's. */

const TEXT = `
.token.retrieved { background-image: linear-gradient(var(--retrieved-bg), var(--retrieved-bg)); box-shadow: 0 2px 0 var(--retrieved); }
.token.retrieved.forced { box-shadow: 0 2px 0 var(--retrieved), inset 0 0 0 1px var(--dim); }
.dropped { color: var(--dim); user-select: none; -webkit-user-select: none; }
/* Not the blank before a draft: a stroke through it reads as a dash. */
.token.dropped, .dropped + .gap.dropped { text-decoration: line-through 1.3px; }
.token.dropped { background-color: transparent; }
.token.dropped.low { border-bottom-color: color-mix(in srgb, var(--low) 60%, transparent); }
.look-up-mark {
  display: inline-block; min-width: 15px; margin: 0 3px; padding: 0 4px; border-radius: 8px; text-align: center; vertical-align: 5px;
  font: 700 10px/14px var(--mono); color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent);
  cursor: pointer; user-select: none; -webkit-user-select: none; text-decoration: none;
}
.look-up-mark::before { content: attr(data-sign); }
.look-up-mark.vain { color: var(--accent); background: var(--bg); border-style: dashed; }
.look-up-mark:hover { box-shadow: 0 0 0 2px color-mix(in srgb, var(--accent) 35%, transparent); }
.look-up-mark.selected { outline: 2px solid var(--accent); outline-offset: 1.5px; }
.look-up-mark:focus-visible { outline: 2px solid var(--accent); outline-offset: 1.5px; box-shadow: 0 0 0 5px color-mix(in srgb, var(--accent) 30%, transparent); }
.mark.retrieved { border-bottom: 2px solid var(--retrieved); background: var(--retrieved-bg); }
.mark.dropped { text-decoration: line-through 1.3px; }
.flare .legend { gap: 4px 8px; }
.flare .legend select { width: 182px; }
.flare .ramp { width: 24px; }
.rule .name { font-weight: 600; }
.rule .chip { white-space: normal; overflow-wrap: anywhere; min-width: 0; }
`;

const MARKS = `
.flare .canvas { min-height: 190px; max-height: 260px; }
.draft-line { fill: none; stroke: var(--raw); stroke-width: 1.2; stroke-dasharray: 3 2.5; stroke-linejoin: round; }
.dots.draft { stroke: var(--raw); stroke-width: 4; }
.dots.trigger { stroke: var(--low); stroke-width: 7.5; }
.dots.ring { stroke: var(--low); stroke-width: 10; }
.dots.hole { stroke: var(--bg); stroke-width: 6.5; }
.chosen-line { stroke: var(--accent); stroke-width: 1; }
.mark-rows .made { fill: var(--accent); font-weight: 700; cursor: pointer; }
.mark-rows .made.last { text-anchor: end; }
.dots.crowded { stroke-width: 3.5; }
.mark-rows .made:hover, .mark-rows .selected { text-decoration: underline; }
.mark-rows .supposed { fill: var(--removed); font-size: 12px; }
`;

const BELOW = `
.below { display: grid; gap: 6px; padding: 2px 0 6px; min-width: 0; }
.what-if { margin: 0; font-size: 12.5px; min-height: 18px; }
.what-if .caveat { color: var(--dim); }
.what-if .caveat::before { content: "· "; }
.what-if.late { color: var(--dim); }
.budget { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0; font-size: 12px; color: var(--dim); }
.budget div { display: flex; gap: 5px; white-space: nowrap; }
.budget dd { margin: 0; color: var(--fg); font: 12px/1.5 var(--mono); }
.beside { margin-top: 4px; min-width: 0; overflow-x: auto; }
.beside h3 { margin: 0 0 3px; font-size: 12.5px; font-weight: 600; }
.beside table { min-width: 430px; }
.beside tr { height: auto; }
.beside :is(th, td) { padding: 3px 4px; vertical-align: top; }
.beside tbody :is(th, td) { border-top: 1px solid var(--line); }
.beside tbody th { color: var(--fg); font-size: 12px; overflow-wrap: anywhere; white-space: normal; }
.beside td.answer { white-space: normal; overflow-wrap: anywhere; }
.beside .answer-text { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.beside .unfinished { display: flex; gap: 6px; align-items: baseline; }
.beside .link { margin: 0; padding: 0; text-align: start; }
.beside .fault { color: var(--removed); }
.beside .quiet { margin: 0; }
.beside tr.chosen th { background: var(--chosen-bg); font-weight: 600; }
.beside-policy { width: 84px; } .beside-answer { width: auto; } .beside-look-ups { width: 58px; } .beside-decoded, .beside-read { width: 56px; } .beside-time { width: 62px; }
`;

const TIMELINE = `
.tabbed { display: flex; flex-direction: column; min-width: 0; background: var(--soft); }
.tabbed .side { background: none; }
.tabs { display: flex; gap: 2px; padding: 0 8px; border-bottom: 1px solid var(--line); }
.tab { font: 12.5px var(--sans); color: var(--dim); background: none; border: 0; border-bottom: 2px solid transparent; margin-bottom: -1px; padding: 7px 8px 6px; cursor: pointer; font-variant-numeric: tabular-nums; }
.tab:hover { color: var(--fg); }
.tab[aria-selected="true"] { color: var(--fg); font-weight: 600; border-bottom-color: var(--accent); }
.tab:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.look-ups { padding: 10px 12px; min-width: 0; min-height: 300px; }
.timeline { list-style: none; margin: 0; padding: 2px; display: grid; gap: 9px; max-height: 620px; overflow: hidden auto; scrollbar-width: thin; }
.look-up { border: 1px solid var(--line); border-left: 3px solid var(--accent); border-radius: 0 5px 5px 0; background: var(--bg); padding: 6px 10px 8px; min-width: 0; }
.look-up:not([data-outcome="found"]) { border-left-style: dashed; }
.look-up.selected { box-shadow: 0 0 0 1px var(--accent); border-color: var(--accent); }
.look-up h4 { margin: 0 0 3px; font-size: 12.5px; line-height: 1.35; }
.look-up-title { font: 600 12.5px/1.35 var(--sans); color: var(--fg); background: none; border: 0; padding: 0; text-align: start; cursor: pointer; border-radius: 3px; overflow-wrap: anywhere; }
.look-up-title:hover bdi { text-decoration: underline; text-decoration-thickness: 1px; }
.look-up-title:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.look-up-title .number { display: inline-block; min-width: 15px; margin-right: 6px; padding: 0 4px; border-radius: 8px; font: 700 10px/15px var(--mono); text-align: center; vertical-align: 1px; color: var(--on-accent); background: var(--accent); }
.look-up:not([data-outcome="found"]) .number { color: var(--accent); background: var(--bg); box-shadow: inset 0 0 0 1px var(--accent); }
.look-up dl { display: grid; grid-template-columns: 52px minmax(0, 1fr); gap: 2px 6px; margin: 0; font-size: 12px; }
.look-up dt { color: var(--dim); }
.look-up dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.look-up q { font-style: italic; quotes: none; unicode-bidi: plaintext; }
.look-up q.cut { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.look-up:is([data-outcome="failed"], [data-outcome="timeout"]) .outcome { color: var(--removed); }
.look-up .hits { grid-column: 2; }
.look-up .link { margin: 0; padding: 0; }
.hits ul, .chances { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px; }
.hit { border-left: 2px solid var(--retrieved); padding-left: 7px; }
.hit.left-out { border-left: 2px dotted var(--dim); color: var(--dim); }
.hit mark { background: var(--retrieved-bg); color: inherit; border-bottom: 2px solid var(--retrieved); border-radius: 2px; }
.passage-text { white-space: pre-line; }
.source { display: block; color: var(--dim); font-size: 11px; }
.why-not { font-style: italic; }
.why-not::before { content: " · "; }
.chances { gap: 1px; }
.chances li { display: flex; gap: 7px; align-items: baseline; min-width: 0; }
.chances .label { max-width: 60%; background: var(--soft); }
.card[data-none] :is(.tabbed, .below) { display: none; }
.card[data-bare] .below .what-if { display: none; }
@media (forced-colors: active) { .token.retrieved { box-shadow: 0 2px 0 CanvasText; } .look-up-mark { border-color: CanvasText; } }
`;

export const FLARE_STYLES = TEXT + MARKS + BELOW + TIMELINE;
