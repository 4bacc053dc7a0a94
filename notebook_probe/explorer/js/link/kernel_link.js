/** The way to the kernel and back: messages, view id, acknowledgements, visibility, silence. */

import { throttled } from "../dom.js";
import { indexProbes } from "../probes.js";
import { indexModules } from "../tree/modules.js";
import { decodeHeat, decodeLines, decodeVectors, wholeFrame } from "./frames.js";

const VERSION = 1;
const SILENT_MS = 3000;
const NOT_SENT = "not sent: the kernel has gone";
const REPORTING = ["waiting", "training", "paused"]; // states in which the kernel says so again and again

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
  let lastMessageMs = performance.now();
  /** @type {number | null} */
  let askedMs = null; // of the first request that has no answer yet
  let unreachable = false;
  let onScreen = true;
  /** @type {boolean | null} */
  let sentVisible = null; // what the kernel knows of it

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
      unreachable = true;
      checkSilence();
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

  /** @type {Record<string, (message: any, buffers: Buffers) => void>} */
  const receivers = {
    /** @param {ModelMessage} message */
    model(message) {
      state.model = { ...message, ...indexModules(message) };
    },
    /** @param {StatusMessage} message */
    status(message) {
      state.status = { ...state.status, ...message }; // long parts are left out while they last
      state.probes = indexProbes(state.status, state.probes);
    },
    /** @param {TicketMessage} message */
    ticket({ v, type, ...ticket }) {
      takeTicket(ticket);
    },
    /** @param {AlertsMessage} message */
    alerts({ whole, rows, findings, remarks }) {
      state.alerts = whole ? rows : [...state.alerts, ...rows];
      state.findings = findings;
      state.remarks = remarks;
    },
    lines: takeFrame(({ message, buffers }) => (state.lines = decodeLines(message, buffers))),
    heat: takeFrame(({ message, buffers }) => (state.heat = decodeHeat(message, buffers))),
    vectors: takeFrame(({ message, buffers }) => (state.vectors = decodeVectors(message, buffers))),
    /** @param {Pointed} message */
    pointed(message) {
      state.cursor = { step: message.step, row: null, from: "kernel" };
      state.emit("cursor");
    },
    /** @param {ViewsMessage} message */
    views(message) {
      state.views = message.rows;
    },
    /** @param {EsmMessage} message */
    esm(message) {
      state.viewMessage = message;
    },
    /**
     * @param {DrawnFrame} message
     * @param {Buffers} buffers
     */
    drawn(message, buffers) {
      state.viewMessage = { ...message, buffers };
    },
    /**
     * @param {Exported} message
     * @param {Buffers} buffers
     */
    exported(message, buffers) {
      state.exported = { ...message, buffer: buffers[0] };
    },
  };

  /**
   * Takes in a frame, or what is new of it; asks for all again where the one before is not here.
   * @template {LinesFrame | HeatFrame | VectorsFrame} Frame
   * @param {(whole: WholeFrame<Frame>) => void} take
   * @returns {(message: SentFrame<Frame>, buffers: Buffers) => void}
   */
  function takeFrame(take) {
    /** @type {WholeFrame<Frame> | null} */
    let last = null;
    return (message, buffers) => {
      const whole = wholeFrame(message, buffers, last);
      if (!whole && last) send("hello", { view });
      last = whole;
      if (whole) take(whole);
    };
  }

  /**
   * @param {{ v: number, type: string }} message
   * @param {Buffers} [buffers]
   */
  function receive(message, buffers) {
    lastMessageMs = performance.now();
    askedMs = null;
    unreachable = false;
    if (message.v !== VERSION) return fail(versionHint(message.v));
    const receiver = receivers[message.type] ?? receiverOfPart(message.type);
    if (!receiver) return undefined; // a newer kernel may say more than we show
    try {
      receiver(message, buffers ?? []);
      if (message.type !== "selection") state.emit(message.type); // emitted when it is adopted
    } catch (error) {
      fail(error); // shown in the panel: a console that nobody opens would hide it
    }
    return checkSilence();
  }

  /**
   * The messages to a part of the panel are kept as they are: each part knows its own.
   * @param {string} type
   */
  function receiverOfPart(type) {
    if (!(type in state.parts)) return null;
    /** @type {(message: object, buffers: Buffers) => void} */
    return (message, buffers) => void Object.assign(state.parts, { [type]: { ...message, buffers } });
  }

  /**
   * The kernel's part, where there is none.
   * @param {string} id
   */
  function refuse(id) {
    /** @type {TicketRow} */
    const ticket = { id, state: "refused", queued_step: -1, applied_step: -1, text: NOT_SENT };
    takeTicket(ticket);
  }

  /**
   * What became of one request, in its place or as the newest.
   * @param {TicketRow} ticket
   */
  function takeTicket(ticket) {
    const others = state.status.tickets.filter(({ id }) => id !== ticket.id);
    state.status = { ...state.status, tickets: [...others, ticket] };
    state.emit("tickets");
  }

  /**
   * Silence is worth a word while an answer is due, or a report: one comes every second. An idle
   * kernel has nothing to say, so that an answer is waited for from the request on.
   */
  function checkSilence() {
    const { state: running, rate } = state.status;
    const patience = Math.max(SILENT_MS, rate ? 3000 / rate : 0); // a step may take long
    /** @type {(sinceMs: number) => boolean} */
    const isLate = (sinceMs) => performance.now() - sinceMs > patience;
    const overdue = (askedMs !== null && isLate(askedMs)) || (REPORTING.includes(running) && isLate(lastMessageMs));
    const late = overdue && sentVisible !== false;
    const silent = state.model.live && (unreachable || late);
    if (silent === state.silent) return;
    state.silent = silent;
    state.emit("silence");
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
    lastMessageMs = performance.now();
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
      askedMs ??= performance.now();
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
      receivers.selection = receiveSelection;
      model.on("msg:custom", receive);
      state.on("cursor", () => pointed() && sendStep());
      signal.addEventListener("abort", () => model.off("msg:custom", receive));
      const watcher = new IntersectionObserver((entries) => {
        onScreen = entries[entries.length - 1].isIntersecting;
        sendVisible();
      });
      watcher.observe(root);
      document.addEventListener("visibilitychange", sendVisible, { signal });
      const timer = setInterval(checkSilence, 500);
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
