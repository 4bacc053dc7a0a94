/** Contents that a reopened notebook shows in the panel's place: stored in the notebook's metadata. */

import { openPackage } from "./saved/loader.js";

const STATES = "application/vnd.jupyter.widget-state+json";
const VIEW = "application/vnd.jupyter.widget-view+json";

const PLAIN = ["string", "number", "boolean"];

const SAVED_STYLE = `.nbp-saved > img { max-width: 100%; }
.jp-OutputArea-child:has(.nbp-saved) + .jp-OutputArea-child { display: none; }
.jp-OutputArea-child:has(.nbp-saved) + * + .jp-OutputArea-child:has(.nbp-handed-on) { display: none; }`;

/**
 * Draws what is kept of the widget: the panel without its kernel, else its picture.
 * @param {{ model: WidgetView, el: HTMLElement }} widget
 */
async function renderSaved({ model, el }) {
  el.classList.add("nbp-saved");
  try {
    return await openPackage(model.get?.("_saved") ?? "", el);
  } catch {
    const image = document.createElement("img");
    image.alt = "The last picture of the panel: its kernel has ended";
    image.src = "data:image/png;base64," + model.get?.("_picture");
    el.replaceChildren(image);
    return undefined;
  }
}

/** All of its code that is kept. */
const SAVED_VIEW = `${openPackage}\n${renderSaved}\nexport default { render: renderSaved };`;

/**
 * Keep what is new, as long as the panel is shown; the newest view does it for all.
 * @param {WidgetView} model
 * @param {AbortSignal} signal
 */
export function keepInNotebook(model, signal) {
  const keep = () => kept(model, signal).catch(() => {}); // a front end that has less of it keeps its outputs
  for (const name of ["_picture", "_saved"]) {
    model.on(`change:${name}`, keep);
    signal.addEventListener("abort", () => model.off(`change:${name}`, keep));
  }
  (globalThis.notebookProbeLive ??= new Set()).add(model.get?.("_own_id"));
  keep();
}

/**
 * Return whether the widget was restored from a notebook and has no live model in the kernel.
 * @param {WidgetView} model
 */
export async function isLeftAlone(model) {
  if (!model.get?.("_saved") || !model.widget_manager) return false;
  const own = await model.widget_manager.get_model(model.get("_own_id") ?? "");
  return own.comm_live === false;
}

/**
 * @param {WidgetView} model
 * @param {AbortSignal} signal
 */
async function kept(model, signal) {
  const manager = model.widget_manager;
  if (!manager?.context || !model.get) return; // not JupyterLab: its outputs are kept
  const notebook = manager.context.model;
  const own = await manager.get_model(model.get("_own_id") ?? "");
  const shown = shownIn(notebook);
  if (signal.aborted || !model.get("_picture") || !shown.has(own.model_id)) return;
  const before = notebook.getMetadata("widgets") ?? {};
  const others = withoutGone(before[STATES]?.state ?? {}, shown);
  const layout = own.get("layout");
  const view = { _esm: SAVED_VIEW, _css: SAVED_STYLE, layout: `IPY_MODEL_${layout.model_id}` };
  const state = {
    ...others,
    [own.model_id]: stateOf(own, view),
    [layout.model_id]: stateOf(layout, {}),
  };
  const states = { version_major: 2, version_minor: 0, ...before[STATES], state };
  notebook.setMetadata("widgets", { ...before, [STATES]: states });
}

/**
 * Ids of the widgets that are shown in outputs.
 * @param {NotebookModel} notebook
 */
function shownIn(notebook) {
  /** @type {Set<string | undefined>} */
  const ids = new Set();
  for (const { outputs } of notebook.cells) {
    if (!outputs) continue;
    for (let k = 0; k < outputs.length; k++) ids.add(outputs.get(k).data[VIEW]?.model_id);
  }
  return ids;
}

/**
 * Existing widget states without those of panels that are no longer shown, and their layouts.
 * @param {Record<string, WidgetState>} states
 * @param {Set<string | undefined>} shown
 */
function withoutGone(states, shown) {
  const gone = Object.entries(states).filter(([id, { state }]) => "_picture" in state && !shown.has(id));
  const ids = new Set(gone.flatMap(([id, { state }]) => [id, state.layout?.slice("IPY_MODEL_".length)]));
  return Object.fromEntries(Object.entries(states).filter(([id]) => !ids.has(id)));
}

/**
 * @param {OwnWidget} widget
 * @param {Record<string, unknown>} changed
 * @returns {WidgetState}
 */
function stateOf({ attributes }, changed) {
  const plain = Object.entries(attributes).filter(([, value]) => PLAIN.includes(typeof value));
  return {
    model_name: attributes._model_name,
    model_module: attributes._model_module,
    model_module_version: attributes._model_module_version,
    state: { ...Object.fromEntries(plain), ...changed },
  };
}
