// Patrols: their runs, what each changed, undo; and the decisions that wait, to be made by hand.

import { get, tool } from "../api.js";
import { button, h, link, message, replace, stored } from "../dom.js";
import { ago, badge, empty, may, momentOf, number, section, state } from "../parts.js";
import { decisionForm } from "../decisions.js";

export const past = "Patrols that had run by then, with what each changed. Which decisions were open is not kept.";

const STATES = { finished: "good", undone: "faint", rolled_back: "warn", running: "warn", pruned: "faint", unjournalled: "faint" };

export async function show(main, { name, argument }) {
  if (name === "patrol") return showRun(main, argument);
  await draw(main);
  return {
    live: (event) => {
      if (event.type !== "patrol") return;
      const bar = main.querySelector("#patrol-progress");
      if (bar && event.event === "progress") { bar.hidden = false; bar.querySelector("progress").value = event.done / event.total; bar.querySelector("span").textContent = event.name; }
      if (["ends", "fails"].includes(event.event)) drawUnlessDeciding(main);
    },
  };
}

/** Draw, unless somebody is deciding when it begins, or when the data have arrived. */
async function drawUnlessDeciding(main) {
  const isDeciding = () => document.querySelector("dialog") !== null || main.querySelector("form.decision :focus") !== null;
  if (!isDeciding()) await draw(main, isDeciding);
}

async function draw(main, isUnwanted = () => false) {
  const [{ runs }, pending] = await Promise.all([get("runs", { limit: 50 }), may("maintain") ? tool("run_patrol", { decisions: [], details: true }) : { pending: [] }]);
  if (isUnwanted()) return;
  const patrol = async (values) => {
    for (const control of main.querySelectorAll(".actions button")) control.disabled = true;
    try {
      const report = await tool("run_patrol", { details: true, ...values });
      if (values.dry_run) showPreview(main, report);
      else { message("The patrol has ended."); await drawUnlessDeciding(main); }
    } catch (error) { message(error.message, "error"); }
    for (const control of main.querySelectorAll(".actions button")) control.disabled = false;
  };
  replace(main, h("h1", {}, "Patrols"),
    may("maintain") ? h("div", { class: "actions" }, button("Run a patrol now", () => patrol({}), { class: "primary" }), button("What would one do?", () => patrol({ dry_run: true }))) : null,
    h("p", { id: "patrol-progress", hidden: true, role: "status" }, h("progress", { max: 1, value: 0, "aria-label": "The running patrol" }), " ", h("span", {})),
    h("div", { id: "preview" }),
    state.asOf ? null : section("Waiting for a decision",
      pending.pending.length
        ? [h("p", { class: "faint" }, `${number(pending.pending.length)} are shown${pending.waiting ? `, ${number(pending.waiting)} more wait` : ""}. What you decide is a run of its own, and can be undone.`),
          pending.pending.map((request) => decisionForm(request, pending.pending, async (decision) => {
            try {
              const report = await tool("run_patrol", { decisions: [decision] });
              const [result] = report.decided ?? [];
              if (result?.refused) message(result.refused, "error"); else { message("Decided."); await draw(main); }
            } catch (error) { message(error.message, "error"); }
          }))]
        : empty("Nothing waits.")),
    section("Runs", runs.length ? h("ul", { class: "log runs" }, runs.map((run) => h("li", {},
      link([momentOf(run.started), " "], `patrol/${run.id}`), badge(run.state.replace("_", " "), STATES[run.state] ?? ""), " ", h("span", {}, summary(run.report)))))
      : empty(state.asOf ? "No patrol had run by then." : "No patrol has run yet.")));
}

function showPreview(main, report) {
  replace(main.querySelector("#preview"), section("What a patrol would do", h("ul", {}, report.steps.map((step) => {
    const text = counted(step);
    return text || step.skipped ? h("li", {}, h("strong", {}, step.name), " ", step.skipped ? h("span", { class: "faint" }, step.skipped) : text) : null;
  })), report.steps.every((step) => !counted(step)) ? empty("Nothing would change.") : null));
}

const counted = (values) => Object.entries(values).filter(([, value]) => typeof value === "number" && value).map(([name, value]) => `${number(value)} ${name.replaceAll("_", " ")}`).join(", ");

export function summary(report) {
  if (report.interrupted) return "interrupted; the finished steps were kept";
  if (report.decided?.length) return `${report.decided.filter((one) => !one.refused).length} decisions`;
  const parts = (report.steps ?? []).filter((step) => step.name !== "age").map((step) => [step.name, counted(step)]).filter(([, text]) => text);
  return parts.map(([name, text]) => `${name}: ${text}`).join("; ") || "nothing";
}

async function showRun(main, id) {
  const { run, changes } = await get(`run/${encodeURIComponent(id)}`);
  const steps = Map.groupBy ? Map.groupBy(changes, (change) => change.step) : grouped(changes);
  const undo = button("Undo this run", async () => {
    undo.disabled = true;
    try {
      const done = await tool("run_patrol", { undo: id });
      message(`Undone: ${counted(done.undone ?? {}) || "nothing was to be changed"}.`);
      await showRun(main, id);
    } catch (error) { undo.disabled = false; message(error.message, "error"); }
  }, { class: "danger" });
  replace(main, h("h1", {}, "Patrol of ", momentOf(run?.started)),
    h("p", { class: "meta" }, h("span", { class: "id" }, id), badge(run.state.replace("_", " "), STATES[run.state] ?? ""), h("span", {}, ago(run.started)), h("span", {}, summary(run.report))),
    run.state === "finished" && may("maintain") ? h("div", { class: "actions" }, undo) : null,
    changes.length ? [...steps].map(([step, list]) => section(`${step} (${number(list.length)})`, h("ul", { class: "diff" }, list.slice(0, 200).map(changeLine)), list.length > 200 ? empty("The first 200 are shown.") : null))
      : empty(run.state === "finished" ? "It changed nothing but the clock." : "What it changed is not kept any more."));
  return {};
}

function grouped(changes) {
  const groups = new Map();
  for (const change of changes) groups.set(change.step, [...(groups.get(change.step) ?? []), change]);
  return groups;
}

function changeLine(change) {
  const { target } = change;
  const name = change.kind === "memory" && target.text ? link(stored(target.text), `memory/${target.id}`) : stored(target.name || target.text || target.id);
  return h("li", {}, h("span", { class: "event" }, change.kind), " ", name,
    h("dl", {}, change.fields.map((field) => h("div", {}, h("dt", {}, field.name.replaceAll("_", " ").trim()),
      h("dd", {}, field.before === null || field.before === "" ? null : h("del", {}, stored(plain(field.before))), " ", field.after === null || field.after === "" ? null : h("ins", {}, stored(plain(field.after))))))));
}

const plain = (value) => (typeof value === "string" ? value : typeof value === "number" ? String(Math.round(value * 1000) / 1000) : JSON.stringify(value));
