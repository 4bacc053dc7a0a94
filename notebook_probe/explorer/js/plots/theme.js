/** The panel's colours as the canvas needs them: CSS variables, resolved by the browser. */

import { element } from "../dom.js";

const AGAIN_MS = 1000;
const ROLES = ["ink", "soft", "line", "edge", "ground", "brand", "bad", "amber"];

/**
 * `read()` gives the colours now; `emit("theme")` follows when the page changes its theme.
 * @param {HTMLElement} root
 * @param {Pick<PanelState, "emit">} state
 * @param {AbortSignal} signal
 */
export function createTheme(root, state, signal) {
  const probes = ROLES.map((role) => element("span", { style: `color: var(--nbp-${role})` }));
  root.append(element("span", { class: "nbp-theme-colors", hidden: "" }, ...probes));
  /** @type {Colours | null} */
  let known = null; // whoever asks the browser has it lay the page out at once, and the frame once more
  let lookedMs = 0;
  let looking = false;
  let changing = 0;
  /** JupyterLab hides its notebooks while it changes the theme: once the next frame is laid out. */
  const changed = () => {
    cancelAnimationFrame(changing);
    changing = requestAnimationFrame(() => (changing = requestAnimationFrame(adopted)));
  };
  const adopted = () => {
    known = null;
    lookedMs = 0;
    adopt();
    state.emit("theme");
  };
  signal.addEventListener("abort", () => cancelAnimationFrame(changing));
  const observer = new MutationObserver(changed);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
  }
  signal.addEventListener("abort", () => observer.disconnect());
  for (const media of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(media).addEventListener("change", changed, { signal });
  }

  /** In a shadow tree, as marimo's, no style sheet of ours sees what the page has chosen. */
  function adopt() {
    if (!(root.getRootNode() instanceof ShadowRoot)) return;
    const isDark = [document.documentElement, document.body].some((node) => node.matches(".dark"));
    root.style.colorScheme = isDark ? "dark" : "light";
  }

  /** @returns {Colours} */
  function look() {
    adopt(); // where it stands is known from the first drawing on
    const colours = ROLES.map((role, k) => [role, getComputedStyle(probes[k]).color]);
    const byRole = /** @type {Omit<Colours, "font">} */ (Object.fromEntries(colours));
    return { ...byRole, font: `11px ${getComputedStyle(root).fontFamily}` };
  }

  /** A style sheet may change without a word: behind a frame, when the page is laid out, asking is cheap. */
  function lookAgain() {
    looking = false;
    lookedMs = performance.now();
    if (signal.aborted || !known) return;
    const before = JSON.stringify(known);
    known = look();
    if (JSON.stringify(known) !== before) state.emit("theme");
  }

  return {
    /** @returns {Colours} */
    read() {
      if (known && !looking && performance.now() - lookedMs > AGAIN_MS) {
        looking = true;
        requestAnimationFrame(() => setTimeout(lookAgain));
      }
      const colours = known ?? look();
      if (root.isConnected) known = colours; // elsewhere it has none
      return colours;
    },
  };
}
