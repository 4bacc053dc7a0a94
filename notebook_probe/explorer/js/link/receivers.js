/** Changes in the state of a view by each message of the kernel. */

import { indexProbes } from "../probes.js";
import { indexModules } from "../tree/modules.js";
import { decodeHeat, decodeLines, decodeVectors, wholeFrame } from "./frames.js";

/** @typedef {(message: any, buffers: Buffers) => void} Receiver */

/**
 * `askAgain()` is called where a frame builds on one that is not here.
 * @param {PanelState} state
 * @param {() => void} askAgain
 */
export function createReceivers(state, askAgain) {
  /** @type {Record<string, Receiver>} */
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
      takeTicket(state, ticket);
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
      if (!whole && last) askAgain();
      last = whole;
      if (whole) take(whole);
    };
  }

  /**
   * The messages to a part of the panel are kept as they are: each part knows its own.
   * @param {string} type
   */
  function receiverOfPart(type) {
    if (!(type in state.parts)) return null;
    /** @type {Receiver} */
    return (message, buffers) => void Object.assign(state.parts, { [type]: { ...message, buffers } });
  }

  return {
    /**
     * What takes in a message; null for one that a newer kernel sends.
     * @param {string} type
     */
    of: (type) => receivers[type] ?? receiverOfPart(type),
    /** @param {(message: SelectionMessage) => void} receive */
    setSelection(receive) {
      receivers.selection = receive;
    },
  };
}

/**
 * What became of one request, in its place or as the newest.
 * @param {PanelState} state
 * @param {TicketRow} ticket
 */
export function takeTicket(state, ticket) {
  const others = state.status.tickets.filter(({ id }) => id !== ticket.id);
  state.status = { ...state.status, tickets: [...others, ticket] };
  state.emit("tickets");
}
