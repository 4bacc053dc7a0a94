/** The panel's colours as the canvas needs them: CSS variables, resolved by the browser. */

import { element } from "../dom.js";

const ROLES = ["ink", "soft", "line", "edge", "ground", "brand", "bad", "amber"];

/** `read()` gives the colours now; `emit("theme")` follows when the page changes its theme. */
export function createTheme(root, state, signal) {
  const probes = ROLES.map((role) => element("span", { style: `color: var(--nbp-${role})` }));
  root.append(element("span", { hidden: "" }, ...probes));
  let known = null; // of this frame: the browser works styles out anew for whoever asks
  let pending = 0;
  /** JupyterLab hides its notebooks while it changes the theme: once the next frame is laid out. */
  const changed = () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => (pending = requestAnimationFrame(adopted)));
  };
  const adopted = () => {
    known = null;
    adopt();
    state.emit("theme");
  };
  signal.addEventListener("abort", () => cancelAnimationFrame(pending));
  const observer = new MutationObserver(changed);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
  }
  signal.addEventListener("abort", () => observer.disconnect());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed, { signal });

  /** In a shadow tree, as marimo's, no style sheet of ours sees what the page has chosen. */
  function adopt() {
    if (!(root.getRootNode() instanceof ShadowRoot)) return;
    const isDark = [document.documentElement, document.body].some((node) => node.matches(".dark"));
    root.style.colorScheme = isDark ? "dark" : "light";
  }

  function look() {
    adopt(); // where it stands is known from the first drawing on
    const colours = ROLES.map((role, k) => [role, getComputedStyle(probes[k]).color]);
    return { ...Object.fromEntries(colours), font: `11px ${getComputedStyle(root).fontFamily}` };
  }

  return {
    read() {
      if (!root.isConnected) return look(); // no colour yet: what is drawn in this frame has to look again
      if (!known) {
        known = look();
        requestAnimationFrame(() => (known = null));
      }
      return known;
    },
  };
}
