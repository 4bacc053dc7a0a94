/**
 * The panel beside the notebook, where it stays in sight while other cells run: a view of its own in
 * JupyterLab's main area, elsewhere this one pinned to the window.
 */

/** @type {Map<string, { node: Element, close: () => void }>} */
const docked = new Map(); // id of a widget -> { node, close } of the place where a view of it stands beside
const changes = new EventTarget(); // all views of a widget share this module

const FRAMED = "This front end shows each output in a separate frame, which a panel cannot leave";
const BLIND = "after the cell"; // a new view could not ask for anything before the cell ends

/** @param {{ model: WidgetView } & Pick<PanelParts, "root" | "state" | "signal">} parts */
export function createDock({ model, root, state, signal }) {
  const isDocked = () => docked.get(id())?.node.contains(root) ?? false;
  const isPinned = () => root.classList.contains("nbp-pinned");
  changes.addEventListener("change", () => state.emit("dock"), { signal });

  function id() {
    return model.get?.("_own_id") ?? "";
  }

  async function dock() {
    if (state.status.route === BLIND || !(await openBeside())) pin();
  }

  /** Whether there is a place for a view of its own. */
  async function openBeside() {
    const manager = model.widget_manager;
    const notebook = root.closest(".jp-NotebookPanel");
    if (!manager?.context?.addSibling || !notebook) return false;
    const { context } = manager;
    const view = await manager.create_view(await manager.get_model(id()));
    const panel = view.luminoWidget;
    /** @type {LuminoClass} */
    const Widget = Object.getPrototypeOf(panel.constructor); // Lumino's own, which no module gives us
    const box = new Widget(); // the manager lays out the panel's node, the front end that of the box
    box.addClass("nbp-docked");
    box.title.label = state.model.name;
    box.title.caption = `${state.model.name}: notebook_probe`;
    box.title.closable = true;
    box.onCloseRequest = () => view.remove();
    panel.disposed.connect(() => box.dispose()); // its model may be closed, too
    box.disposed.connect(() => tell(id(), null));
    context.addSibling?.(box, { ref: notebook.id, mode: "split-right" });
    if (box.isAttached) {
      Widget.attach(panel, box.node);
      tell(id(), { node: box.node, close: () => view.remove() });
    } else view.remove(); // Notebook 7 has room for one document
    return !box.isDisposed;
  }

  function pin() {
    root.setAttribute("popover", "manual"); // above the page, whatever clips or moves the cell
    root.classList.add("nbp-pinned");
    root.showPopover();
    state.emit("dock");
  }

  function unpin() {
    root.hidePopover();
    root.removeAttribute("popover");
    root.classList.remove("nbp-pinned");
    state.emit("dock");
  }

  return {
    /** "here" in its cell, "docked" or "pinned" beside the notebook, "away" while another view is there. */
    place() {
      if (isPinned()) return "pinned";
      if (isDocked()) return "docked";
      return docked.has(id()) ? "away" : "here";
    },
    /** Why it must stay where it is; "" where it need not. */
    reason() {
      const framed = window.top !== window && !model.widget_manager?.context?.addSibling;
      return framed ? FRAMED : "";
    },
    /** Beside the notebook, or back into it. */
    async toggle() {
      const beside = docked.get(id());
      if (isPinned()) unpin();
      else if (beside) beside.close();
      else await dock();
    },
  };
}

/**
 * @param {string} id
 * @param {{ node: Element, close: () => void } | null} place
 */
function tell(id, place) {
  if (place) docked.set(id, place);
  else docked.delete(id);
  changes.dispatchEvent(new Event("change"));
}
