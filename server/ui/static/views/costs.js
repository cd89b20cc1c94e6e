// What language models cost: tokens by day and purpose.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { empty, number, section } from "../parts.js";
import { columns } from "../charts.js";

export const past = "The 90 days up to then.";

export async function show(main) {
  const { costs, days } = await get("costs");
  if (!costs.length) {
    replace(main, h("h1", {}, "Costs"), empty(`No language model was asked in the last ${days} days. None is needed.`));
    return {};
  }
  const purposes = [...new Set(costs.map((cost) => cost.purpose))];
  const byDay = new Map();
  for (const cost of costs) byDay.set(cost.day, [...(byDay.get(cost.day) ?? []), [cost.purpose, cost.input_tokens + cost.output_tokens, `fill-${purposes.indexOf(cost.purpose) % 10}`]]);
  const sum = (name) => costs.reduce((total, cost) => total + (cost[name] ?? 0), 0);
  const money = (usd) => (usd === null ? "not known" : `$${usd.toFixed(4)}`);
  replace(main, h("h1", {}, "Costs"),
    h("dl", { class: "counts" }, [["calls", number(sum("calls"))], ["tokens", number(sum("input_tokens") + sum("output_tokens"))], ["US dollars, where known", sum("usd").toFixed(2)]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    section("Tokens by day", columns("Tokens by day", [...byDay], "tokens"), h("ul", { class: "legend" }, purposes.map((purpose, place) => h("li", {}, h("span", { class: "dot", style: { background: `var(--c${place % 10})` } }), purpose)))),
    h("div", { class: "scroll panel", tabindex: 0, role: "region", "aria-label": "All costs" }, h("table", {},
      h("thead", {}, h("tr", {}, ["day", "purpose", "model", "calls", "tokens in", "tokens out", "cost"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, costs.slice().reverse().map((cost) => h("tr", {}, [cost.day, cost.purpose, cost.model].map((text) => h("td", {}, text)), [number(cost.calls), number(cost.input_tokens), number(cost.output_tokens), money(cost.usd)].map((text) => h("td", { class: "amount" }, text))))))));
  return {};
}
