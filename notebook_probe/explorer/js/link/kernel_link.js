/** The way to the kernel and back: messages, view id, acknowledgements, visibility, silence. */

import { throttled } from "../dom.js";
import { createReceivers, takeTicket } from "./receivers.js";
import { createSilence } from "./silence.js";

const VERSION = 1;
const NOT_SENT = "not sent: the kernel has ended";

/** @param {{ model: Comm } & Pick<PanelParts, "root" | "state" | "fail" | "signal">} parts */
export function createKernelLink({ model, root, state, fail, signal }) {
  const view = randomId();
  /** @type {Record<string, number>} */
  const widths = {}; // of each plot by name, in pixels
  /** @type {Record<string, number>} */
  const acknowledged = {};
  /** @type {Record<string, number>} */
  let painted = {}; // and not acknowledged yet
  let settling = 0;
  let acknowledging = 0;
  let asked = 0;
  let onScreen = true;
  /** @type {boolean | null} */
  let sentVisible = null; // what the kernel knows of it
  const silence = createSilence(state, () => sentVisible === false, () => model.widget_manager?.kernel?.status ?? "");
  const receivers = createReceivers(state, () => send("hello", { view }));

  /**
   * Whether it could be sent: a kernel that has gone takes its comm along.
   * @template {MessageType} Type
   * @param {Type} type
   * @param {FieldsOf<Type>} fields
   */
  function send(type, fields) {
    return post(type, fields);
  }

  /**
   * @param {MessageType} type
   * @param {object} fields
   */
  function post(type, fields) {
    try {
      model.send({ v: VERSION, type, ...fields });
    } catch {
      silence.lost();
      return false;
    }
    return true;
  }
  const sendStep = throttled(100, sendPointed, signal);
  const sendWidths = throttled(100, sendViewport, signal);
  signal.addEventListener("abort", () => {
    clearTimeout(settling);
    clearTimeout(acknowledging);
  });

  /**
   * @param {{ v: number, type: string }} message
   * @param {Buffers} [buffers]
   */
  function receive(message, buffers) {
    silence.heard();
    if (message.v !== VERSION) return fail(versionHint(message.v));
    const receiver = receivers.of(message.type);
    if (!receiver) return undefined; // a newer kernel may say more than we show
    try {
      receiver(message, buffers ?? []);
      if (message.type !== "selection") state.emit(message.type); // emitted when it is adopted
    } catch (error) {
      fail(error); // shown in the panel: a console that nobody opens would hide it
    }
    return silence.check();
  }

  /**
   * The kernel's part, where there is none.
   * @param {string} id
   */
  function refuse(id) {
    /** @type {TicketRow} */
    const ticket = { id, state: "refused", queued_step: -1, applied_step: -1, text: NOT_SENT };
    takeTicket(state, ticket);
  }

  /** The step under the pointer, for those who link their own plots with it. */
  function pointed() {
    if (!state.cursor || state.cursor.from === "kernel") return null;
    return { step: Math.max(0, Math.round(state.cursor.step)) };
  }

  function sendPointed() {
    const at = pointed();
    if (at) send("pointed", at);
  }

  function acknowledge() {
    send("ack", { view, painted });
    painted = {};
  }

  function sendViewport() {
    send("viewport", { view, widths, pixel_ratio: devicePixelRatio || 1 });
  }

  function sendVisible() {
    const visible = onScreen && !document.hidden;
    if (visible === sentVisible) return;
    sentVisible = visible;
    silence.restart();
    send("visible", { view, visible });
  }

  return {
    view,
    send,
    /**
     * A request with a ticket; returns the ticket's id.
     * @template {ClickType} Type
     * @param {Type} type
     * @param {ClickOf<Type>} fields
     */
    ask(type, fields) {
      const id = `${view}-${++asked}`;
      silence.asked();
      if (!post(type, { id, ...fields })) queueMicrotask(() => refuse(id)); // who asked follows the id first
      return id;
    },
    /**
     * @param {string} kind
     * @param {number} seq
     */
    painted(kind, seq) {
      if (acknowledged[kind] === seq) return;
      acknowledged[kind] = seq;
      state.frames += 1;
      state.emit("painted");
      painted[kind] = seq;
      clearTimeout(acknowledging);
      acknowledging = setTimeout(acknowledge); // all plots of one animation frame together
    },
    /**
     * @param {string} name
     * @param {number} width
     */
    resized(name, width) {
      const rounded = Math.max(0, Math.round(width));
      if ((widths[name] ?? 0) === rounded) return;
      if (rounded) widths[name] = rounded;
      else delete widths[name];
      clearTimeout(settling);
      settling = setTimeout(sendWidths); // all plots of one layout together
    },
    /**
     * From now on messages are taken in; those about the selection go to `receiveSelection`.
     * @param {(message: SelectionMessage) => void} receiveSelection
     */
    start(receiveSelection) {
      receivers.setSelection(receiveSelection);
      model.on("msg:custom", receive);
      state.on("cursor", () => pointed() && sendStep());
      signal.addEventListener("abort", () => model.off("msg:custom", receive));
      const watcher = new IntersectionObserver((entries) => {
        onScreen = entries[entries.length - 1].isIntersecting;
        sendVisible();
      });
      watcher.observe(root);
      document.addEventListener("visibilitychange", sendVisible, { signal });
      const timer = setInterval(silence.check, 500);
      signal.addEventListener("abort", () => {
        watcher.disconnect();
        clearInterval(timer);
        send("visible", { view, visible: false });
      });
      send("hello", { view });
    },
  };
}

/** @param {number} version */
function versionHint(version) {
  const both = `version ${VERSION} of its messages, the kernel version ${version}`;
  return `This panel speaks ${both}: reload the page.`;
}

// randomUUID needs https; a notebook server on another machine often has none.
function randomId() {
  return [...crypto.getRandomValues(new Uint32Array(3))].map((word) => word.toString(36)).join("");
}
